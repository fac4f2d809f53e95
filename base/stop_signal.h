// SIGTERM and SIGINT as a call to a function, outside of any signal handler.

#ifndef OPTFARM_BASE_STOP_SIGNAL_H_
#define OPTFARM_BASE_STOP_SIGNAL_H_

#include <atomic>
#include <functional>
#include <thread>

namespace optfarm {

// While one of these lives, the two signals do not end the process; each one
// that arrives is a call of `on_stop` from a thread of its own.
// REQUIRES: made before the process has other threads, which inherit that the
// signals are blocked; at most one at a time.
class StopSignal {
 public:
  explicit StopSignal(std::function<void()> on_stop);
  // No call of `on_stop` is under way or comes afterwards. The signals stay
  // blocked.
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

 private:
  void Wait();

  const std::function<void()> on_stop_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// Blocks the two signals in this thread and those it starts, so that one that
// comes before the StopSignal exists is kept for it.
void HoldStopSignals();

}  // namespace optfarm

#endif  // OPTFARM_BASE_STOP_SIGNAL_H_
