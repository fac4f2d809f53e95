#include "base/clock.h"

#include "absl/time/clock.h"

namespace optfarm {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void Sleep(absl::Duration duration) override { absl::SleepFor(duration); }
  bool AwaitWithTimeout(absl::Mutex* mutex, const absl::Condition& condition,
                        absl::Duration timeout) override
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return mutex->AwaitWithTimeout(condition, timeout);
  }
};

}  // namespace

Clock* RealClock() {
  static SystemClock* const clock = new SystemClock;
  return clock;
}

absl::Time FakeClock::Now() {
  absl::MutexLock lock(&mutex_);
  return now_;
}

bool FakeClock::AwaitWithTimeout(absl::Mutex* mutex,
                                 const absl::Condition& condition,
                                 absl::Duration timeout) {
  // A timeout of zero only looks, and lets waiters and writers have the mutex.
  if (mutex->AwaitWithTimeout(condition, absl::ZeroDuration())) return true;
  Advance(timeout);
  return mutex->AwaitWithTimeout(condition, absl::ZeroDuration());
}

void FakeClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  now_ += duration;
}

}  // namespace optfarm
