// Who may call what, as a server knows it that stands by: a copy of the
// leader's tokens that is at most a second old. It is for saying yes; whoever
// it does not know to be let in, the leader decides about.

#ifndef OPTFARM_SERVER_FORWARDING_FOLLOWED_ACCESS_H_
#define OPTFARM_SERVER_FORWARDING_FOLLOWED_ACCESS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "server/access/access_control.h"
#include "server/access/project_limits.h"
#include "storage/postgres/follower.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace optfarm::server {

// THREADS: safe.
class FollowedAccess {
 public:
  struct Options {
    // "postgresql://..."
    std::string database;
    // As AccessControl::Load's.
    std::string operator_token;
    // As CallDoor's.
    bool needs_certificate = false;
    ProjectLimits project_limits;
    LimitsByProject limits_by_project;
  };

  // OWNERSHIP: the clock outlives it.
  FollowedAccess(const Options& options, Clock& clock);

  // Looks whether the copy is still right, several times a second. Waits a few
  // seconds for a database that does not answer.
  void Refresh();
  // Puts other limits of single projects into force.
  void SetProjectLimits(LimitsByProject limits) {
    limits_.Replace(std::move(limits));
  }

  // Who makes this call of `method`, as CallDoor::Screen; nullopt: ask the
  // leader.
  std::optional<Caller> Screen(const grpc::ServerContextBase& context,
                               const std::string& method);
  // The same for a call that the leader will not see: it counts for the rate of
  // its project.
  std::optional<Caller> Admit(const grpc::ServerContextBase& context,
                              const std::string& method);

 private:
  using SteadyClock = std::chrono::steady_clock;

  bool IsFresh() const;

  const bool needs_certificate_;
  ProjectLimitsTable limits_;
  CallRate rate_{limits_};
  Clock& clock_;
  // Used by Refresh.
  storage::TokenWatch watch_;
  const std::unique_ptr<AccessControl> access_;
  std::string mark_;
  bool failed_ = false;
  mutable absl::Mutex mutex_;
  // The copy was right then.
  std::optional<SteadyClock::time_point> right_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_FORWARDING_FOLLOWED_ACCESS_H_
