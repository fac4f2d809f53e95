#include "engine/runtime/core/run_bounds.h"

#include "absl/strings/str_cat.h"
#include "base/clock.h"

namespace optfarm::runtime {
namespace {

thread_local const RunBounds* current = nullptr;

}  // namespace

RunBounds::RunBounds(const std::atomic<bool>* cancelled, absl::Duration timeout,
                     Clock* clock)
    : cancelled_(cancelled),
      timeout_(timeout),
      clock_(clock != nullptr ? clock : RealClock()),
      start_(timeout == absl::InfiniteDuration() ? absl::InfinitePast()
                                                 : clock_->Now()) {}

absl::Status RunBounds::Check() const {
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the run was cancelled by the caller");
  }
  if (timeout_ != absl::InfiniteDuration() &&
      clock_->Now() - start_ > timeout_) {
    return absl::DeadlineExceededError(
        absl::StrCat("the run took longer than its limit of ",
                     absl::FormatDuration(timeout_)));
  }
  return absl::OkStatus();
}

BoundsScope::BoundsScope(const RunBounds* bounds) : outer_(current) {
  current = bounds;
}

BoundsScope::~BoundsScope() { current = outer_; }

const RunBounds* BoundsScope::Current() { return current; }

void LeaveIfRunEnded() {
  if (current != nullptr && !current->Check().ok()) throw RunEnded();
}

}  // namespace optfarm::runtime
