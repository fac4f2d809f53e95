#include "server/forwarding/leader_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "rpc/status.h"

namespace optfarm::server {
namespace {

// Below what a server takes on one connection; further ones would wait.
constexpr int kCallsOfALane = 200;
// Of 10,000 agents that wait for work, and then some.
constexpr size_t kMaxLanes = 100;

absl::Status LeaderIsGone() {
  return absl::UnavailableError(
      "the server that led this farm leads no longer: try again");
}

}  // namespace

absl::Status LeaderLanes::Place::Outcome(const grpc::Status& status) const {
  if (status.error_code() == grpc::CANCELLED && leader_is_gone()) {
    return LeaderIsGone();
  }
  return rpc::FromGrpc(status);
}

LeaderLanes::Place::~Place() {
  absl::MutexLock lock(&lanes_->mutex_);
  --lane_.calls;
  lanes_->contexts_.erase(context_);
}

absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> LeaderLanes::Enter(
    std::shared_ptr<grpc::ClientContext> context) {
  absl::MutexLock lock(&mutex_);
  if (gone_) return LeaderIsGone();
  auto lane = std::find_if(lanes_.begin(), lanes_.end(), [](const auto& one) {
    return one->calls < kCallsOfALane;
  });
  if (lane == lanes_.end()) {
    if (lanes_.size() == kMaxLanes) {
      return absl::ResourceExhaustedError(
          "this server sends on as many calls as it can: try again in a few "
          "seconds, or ask another server");
    }
    OPTFARM_ASSIGN_OR_RETURN(auto channel, rpc::MakeChannel(leader_));
    lanes_.push_back(std::make_unique<Lane>(std::move(channel)));
    lane = lanes_.end() - 1;
  }
  ++(*lane)->calls;
  contexts_.push_front(std::move(context));
  return std::unique_ptr<Place>(
      new Place(shared_from_this(), **lane, contexts_.begin()));
}

int LeaderLanes::open_calls() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(contexts_.size());
}

void LeaderLanes::BreakOff() {
  Contexts contexts;
  {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
    contexts = contexts_;
  }
  // Calls may end, and give their places back, on this thread.
  for (const auto& context : contexts) context->TryCancel();
}

}  // namespace optfarm::server
