// A thread that does what is due, when it is due or when it is woken.

#ifndef OPTFARM_SERVER_DELIVERY_TICKER_H_
#define OPTFARM_SERVER_DELIVERY_TICKER_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace optfarm::server {

// THREADS: Wake may be called from any thread; Start and Stop from one.
class Ticker {
 public:
  // `step` does what is due at a time and returns when it wants to run next.
  using Step = std::function<absl::Time(absl::Time now)>;

  // OWNERSHIP: the clock outlives the ticker.
  Ticker(Clock& clock, Step step);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  void Start();
  // ENSURES: the step is not running and will not run again.
  void Stop();
  // Runs the step soon.
  void Wake();

 private:
  void Loop();

  Clock& clock_;
  const Step step_;
  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_TICKER_H_
