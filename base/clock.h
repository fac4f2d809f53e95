// Time as an injected value: code that waits or stamps takes a Clock, so that
// its tests run on a fake one. Scheduling code goes further and takes `now`.

#ifndef OPTFARM_BASE_CLOCK_H_
#define OPTFARM_BASE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace optfarm {

// THREADS: all methods may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time; may jump when the machine's clock is set.
  virtual absl::Time Now() = 0;
  // Blocks the caller for at least `duration`.
  virtual void Sleep(absl::Duration duration) = 0;
  // Blocks until `condition` holds or `timeout` has passed; returns whether it
  // holds. REQUIRES: the caller holds `mutex`, as for absl::Mutex's own.
  virtual bool AwaitWithTimeout(absl::Mutex* mutex,
                                const absl::Condition& condition,
                                absl::Duration timeout)
      ABSL_SHARED_LOCKS_REQUIRED(mutex) = 0;
};

// The machine's clock. OWNERSHIP: lives for the whole process.
Clock* RealClock();

// A clock that moves only when told. Sleep advances it and returns at once, and
// so does AwaitWithTimeout when its condition does not hold yet.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(absl::Time start) : now_(start) {}
  absl::Time Now() override;
  void Sleep(absl::Duration duration) override { Advance(duration); }
  bool AwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_SHARED_LOCKS_REQUIRED(mutex);
  void Advance(absl::Duration duration);

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_CLOCK_H_
