#include "server/delivery/ticker.h"

#include <algorithm>
#include <utility>

namespace optfarm::server {
namespace {

// Longest wait: the wall clock may be set back.
constexpr absl::Duration kLongestWait = absl::Seconds(10);

}  // namespace

Ticker::Ticker(Clock& clock, Step step)
    : clock_(clock), step_(std::move(step)) {}

Ticker::~Ticker() { Stop(); }

void Ticker::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Ticker::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
}

void Ticker::Loop() {
  while (true) {
    const absl::Time now = clock_.Now();
    const absl::Duration wait = std::min(step_(now) - now, kLongestWait);
    absl::MutexLock lock(&mutex_);
    const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return woken_ || stopped_;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&due),
                            std::max(wait, absl::ZeroDuration()));
    woken_ = false;
    if (stopped_) return;
  }
}

}  // namespace optfarm::server
