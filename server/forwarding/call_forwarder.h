// The services of a server that stands by: every call goes to the leader.

#ifndef OPTFARM_SERVER_FORWARDING_CALL_FORWARDER_H_
#define OPTFARM_SERVER_FORWARDING_CALL_FORWARDER_H_

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "rpc/channel.h"
#include "server/forwarding/leader_lanes.h"
#include "storage/postgres/leader_watch.h"

namespace optfarm::server {

// THREADS: safe. OWNERSHIP: outlives its gRPC server.
class CallForwarder final : public grpc::CallbackGenericService {
 public:
  // `ca`: who signed the leader's certificate; empty: no TLS.
  explicit CallForwarder(std::string ca) : ca_(std::move(ca)) {}

  // Where calls go from now on; nullopt: nobody leads, and calls are answered
  // with Unavailable. Calls that went to another leader are broken off.
  void SetLeader(const std::optional<storage::LeaderRecord>& leader);

  // OK when calls have somewhere to go.
  absl::Status Ready() const;
  // Where calls go; nullopt: nobody leads.
  std::optional<storage::LeaderRecord> leader() const;
  // Sent on and not yet answered; and all so far.
  int open_calls() const;
  int64_t all_calls() const { return all_calls_; }

  // A place for asking the leader in the name of a call that came here, with
  // that call's metadata, deadline and cancellation.
  // ERRORS: those of LeaderLanes::Enter; Unavailable when nobody leads, or when
  // another server has sent the call on.
  absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> Enter(
      const grpc::ServerContextBase& context) const;
  // One more was sent on.
  void NoteSentOn() { ++all_calls_; }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  // REQUIRES: there are no lanes.
  absl::Status WhyNobody() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<LeaderLanes> lanes() const;
  absl::StatusOr<std::shared_ptr<LeaderLanes>> LanesFor(
      const grpc::ServerContextBase& context) const;

  const std::string ca_;
  std::atomic<int64_t> all_calls_ = 0;
  mutable absl::Mutex mutex_;
  std::optional<storage::LeaderRecord> leader_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<LeaderLanes> lanes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_CALL_FORWARDER_H_
