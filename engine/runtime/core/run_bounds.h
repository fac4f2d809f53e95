// When a run is to end before it is done: its caller's flag and its time. The
// executor looks between steps; ThreadPool::ParallelFor and long loops of
// kernels look within one. There it is an exception that leaves the kernel,
// like the one for memory that is not to be had: half of a result is of no use
// to the rest of the kernel. The executor turns it into a status.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_RUN_BOUNDS_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_RUN_BOUNDS_H_

#include <atomic>
#include <exception>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace optfarm {
class Clock;
}  // namespace optfarm

namespace optfarm::runtime {

// THREADS: may be asked by many threads at once.
class RunBounds {
 public:
  // Counts the time from now. `cancelled` may be nullptr, and so may `clock`,
  // for the machine's. OWNERSHIP: both are borrowed.
  RunBounds(const std::atomic<bool>* cancelled, absl::Duration timeout,
            Clock* clock = nullptr);

  // Whether there is anything to look at.
  bool is_bounded() const {
    return cancelled_ != nullptr || timeout_ != absl::InfiniteDuration();
  }
  // ERRORS: Cancelled or DeadlineExceeded when the run is to end.
  absl::Status Check() const;

 private:
  const std::atomic<bool>* const cancelled_;
  const absl::Duration timeout_;
  Clock* const clock_;
  const absl::Time start_;
};

// Puts this thread under bounds as long as it lives; nullptr: under none.
// Scopes nest; only the innermost counts.
class BoundsScope {
 public:
  explicit BoundsScope(const RunBounds* bounds);
  ~BoundsScope();
  BoundsScope(const BoundsScope&) = delete;
  BoundsScope& operator=(const BoundsScope&) = delete;

  // nullptr when this thread stands under none.
  static const RunBounds* Current();

 private:
  const RunBounds* const outer_;
};

// What leaves a kernel whose run is to end.
class RunEnded : public std::exception {
 public:
  const char* what() const noexcept override { return "the run is to end"; }
};

// Throws RunEnded when the bounds that this thread stands under say so. For
// loops of some milliseconds each turn; costs next to nothing without bounds.
void LeaveIfRunEnded();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_RUN_BOUNDS_H_
