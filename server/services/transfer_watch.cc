#include "server/services/transfer_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::server {

TransferWatch::Transfer::~Transfer() {
  absl::MutexLock lock(&watch_.mutex_);
  watch_.transfers_.erase(state_);
}

void TransferWatch::Transfer::Moved(absl::Time now) {
  absl::MutexLock lock(&watch_.mutex_);
  state_->last_moved = std::max(state_->last_moved, now);
}

bool TransferWatch::Transfer::Stalled() const {
  absl::MutexLock lock(&watch_.mutex_);
  return state_->stalled;
}

absl::StatusOr<std::unique_ptr<TransferWatch::Transfer>> TransferWatch::Begin(
    std::function<void()> cancel, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (transfers_.size() >= options_.max_transfers) {
    return absl::UnavailableError(
        absl::StrCat(transfers_.size(),
                     " transfers are under way, which is "
                     "all this server takes; try again"));
  }
  transfers_.push_back({std::move(cancel), now, false});
  return std::unique_ptr<Transfer>(
      new Transfer(*this, std::prev(transfers_.end())));
}

void TransferWatch::CancelStalled(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (Transfer::State& transfer : transfers_) {
    if (transfer.stalled || now - transfer.last_moved < options_.idle_limit) {
      continue;
    }
    transfer.stalled = true;
    transfer.cancel();
  }
}

}  // namespace optfarm::server
