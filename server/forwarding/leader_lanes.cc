#include "server/forwarding/leader_lanes.h"

#include <algorithm>

#include "absl/status/status.h"
#include "base/status_macros.h"

namespace optfarm::server {
namespace {

// Below what a server takes on one connection; further ones would wait.
constexpr int kCallsOfALane = 200;
// Of 10,000 agents that wait for work, and then some.
constexpr size_t kMaxLanes = 100;

}  // namespace

LeaderLanes::Place::~Place() {
  absl::MutexLock lock(&lanes_->mutex_);
  --lane_.calls;
  lanes_->contexts_.erase(context_);
}

absl::StatusOr<std::unique_ptr<LeaderLanes::Place>> LeaderLanes::Enter(
    std::shared_ptr<grpc::ClientContext> context) {
  absl::MutexLock lock(&mutex_);
  if (gone_) {
    return absl::UnavailableError(
        "the server that led this farm leads no longer: try again");
  }
  auto lane = std::find_if(lanes_.begin(), lanes_.end(), [](const auto& one) {
    return one->calls < kCallsOfALane;
  });
  if (lane == lanes_.end()) {
    if (lanes_.size() == kMaxLanes) {
      return absl::ResourceExhaustedError(
          "this server sends on as many calls as it can: try again in a few "
          "seconds, or ask another server");
    }
    OPTFARM_ASSIGN_OR_RETURN(const auto channel, rpc::MakeChannel(leader_));
    lanes_.push_back(std::make_unique<Lane>(channel));
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
