#include "base/clock.h"

#include "absl/time/clock.h"

namespace optfarm {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void Sleep(absl::Duration duration) override { absl::SleepFor(duration); }
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

void FakeClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  now_ += duration;
}

}  // namespace optfarm
