#include "base/stop_signal.h"

#include <signal.h>

#include <utility>

#include "base/log.h"

namespace optfarm {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void HoldStopSignals() {
  const sigset_t set = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

StopSignal::StopSignal(std::function<void()> on_stop)
    : on_stop_(std::move(on_stop)) {
  HoldStopSignals();
  thread_ = std::thread([this] { Wait(); });
}

StopSignal::~StopSignal() {
  over_ = true;
  thread_.join();
}

void StopSignal::Wait() {
  const sigset_t set = StopSignals();
  const struct timespec slice = {0, 100'000'000};
  while (!over_) {
    const int signal = ::sigtimedwait(&set, nullptr, &slice);
    if (signal <= 0) continue;
    LogInfo("got ", signal == SIGTERM ? "SIGTERM" : "SIGINT", ", stopping");
    on_stop_();
  }
}

}  // namespace optfarm
