#include "server/forwarding/followed_access.h"

#include <grpcpp/server_context.h>

#include <utility>

#include "base/log.h"
#include "server/access/call_door.h"

namespace optfarm::server {
namespace {

constexpr std::chrono::milliseconds kMaxAge(1000);

}  // namespace

FollowedAccess::FollowedAccess(const Options& options, Clock& clock)
    : needs_certificate_(options.needs_certificate),
      limits_(options.project_limits, options.limits_by_project),
      clock_(clock),
      watch_(options.database),
      access_(AccessControl::Follow(options.operator_token, watch_.tokens(),
                                    clock)) {}

void FollowedAccess::Refresh() {
  const SteadyClock::time_point begin = SteadyClock::now();
  absl::StatusOr<std::string> mark = watch_.Mark();
  absl::Status status = mark.status();
  // What is read after the mark is at least as new.
  if (status.ok() && *mark != mark_) status = access_->Reload();
  if (!status.ok()) {
    if (!std::exchange(failed_, true)) {
      LogWarning(
          "looking at the tokens, so that the leader need not be asked: ",
          status.message());
    }
    return;
  }
  failed_ = false;
  mark_ = *std::move(mark);
  absl::MutexLock lock(&mutex_);
  right_at_ = begin;
}

bool FollowedAccess::IsFresh() const {
  absl::MutexLock lock(&mutex_);
  return right_at_.has_value() && SteadyClock::now() - *right_at_ < kMaxAge;
}

std::optional<Caller> FollowedAccess::Screen(
    const grpc::ServerContextBase& context, const std::string& method) {
  if (!IsFresh()) return std::nullopt;
  const CallHead head = HeadOf(context, /*secret=*/"");
  absl::StatusOr<Caller> caller = access_->Identify(head.authorization);
  if (!caller.ok() || !access_->Check(*caller, method).ok()) {
    return std::nullopt;
  }
  if (needs_certificate_ &&
      !access_->CheckCertificate(*caller, method, head.certified).ok()) {
    return std::nullopt;
  }
  return *std::move(caller);
}

std::optional<Caller> FollowedAccess::Admit(
    const grpc::ServerContextBase& context, const std::string& method) {
  std::optional<Caller> caller = Screen(context, method);
  if (!caller || caller->OfFarm()) return caller;
  if (!rate_.Take(caller->project, clock_.Now()).ok()) return std::nullopt;
  return caller;
}

}  // namespace optfarm::server
