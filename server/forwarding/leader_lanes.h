// The way to the leader: connections of which each carries as many calls as a
// server takes on one, and the calls that are on them.

#ifndef OPTFARM_SERVER_FORWARDING_LEADER_LANES_H_
#define OPTFARM_SERVER_FORWARDING_LEADER_LANES_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rpc/channel.h"

namespace optfarm::server {

// THREADS: safe.
class LeaderLanes : public std::enable_shared_from_this<LeaderLanes> {
 private:
  struct Lane {
    explicit Lane(std::shared_ptr<grpc::Channel> to)
        : channel(std::move(to)), stub(channel) {}
    const std::shared_ptr<grpc::Channel> channel;
    grpc::GenericStub stub;
    int calls = 0;
  };
  using Contexts = std::list<std::shared_ptr<grpc::ClientContext>>;

 public:
  // `secret`: what calls to this leader show.
  LeaderLanes(rpc::ChannelOptions leader, std::string secret)
      : leader_(std::move(leader)), secret_(std::move(secret)) {}

  // The place of one call, until it is destroyed.
  class Place {
   public:
    ~Place();
    grpc::GenericStub& stub() { return lane_.stub; }
    const std::shared_ptr<grpc::Channel>& channel() { return lane_.channel; }
    grpc::ClientContext& context() { return **context_; }
    // The leader leads no longer, and the call was broken off.
    bool leader_is_gone() const { return lanes_->gone_; }
    // How a call that the leader answered with `status` ended: Unavailable when
    // it was broken off.
    absl::Status Outcome(const grpc::Status& status) const;

   private:
    friend class LeaderLanes;
    Place(std::shared_ptr<LeaderLanes> lanes, Lane& lane,
          Contexts::iterator context)
        : lanes_(std::move(lanes)), lane_(lane), context_(context) {}
    const std::shared_ptr<LeaderLanes> lanes_;
    Lane& lane_;
    const Contexts::iterator context_;
  };

  // ERRORS: ResourceExhausted when there are too many; Unavailable when the
  // leader is gone; those of MakeChannel.
  absl::StatusOr<std::unique_ptr<Place>> Enter(
      std::shared_ptr<grpc::ClientContext> context);

  const std::string& secret() const { return secret_; }
  int open_calls() const;

  // Breaks off all calls, and lets none in.
  void BreakOff();

 private:
  const rpc::ChannelOptions leader_;
  const std::string secret_;
  std::atomic<bool> gone_ = false;
  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<Lane>> lanes_ ABSL_GUARDED_BY(mutex_);
  Contexts contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_LEADER_LANES_H_
