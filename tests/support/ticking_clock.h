// A clock for bounds on time: it moves by one step each time somebody looks, so
// that a limit is a number of looks, the same on every machine.

#ifndef OPTFARM_TESTS_SUPPORT_TICKING_CLOCK_H_
#define OPTFARM_TESTS_SUPPORT_TICKING_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "base/clock.h"

namespace optfarm::testing {

// THREADS: safe.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(absl::Duration step) : step_(step) {}

  // UNITS: calls of Now so far.
  int64_t looks() const { return looks_; }

  absl::Time Now() override { return absl::UnixEpoch() + step_ * looks_++; }
  void Sleep(absl::Duration) override { ++looks_; }
  bool AwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                        absl::Duration) override
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    ++looks_;
    return mutex->AwaitWithTimeout(condition, absl::ZeroDuration());
  }

 private:
  const absl::Duration step_;
  std::atomic<int64_t> looks_{0};
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_TICKING_CLOCK_H_
