#include "engine/benchmark/memory_sampler.h"

#include <algorithm>

#include "engine/benchmark/environment.h"

namespace optfarm::benchmark {

MemorySampler::MemorySampler(absl::Duration interval)
    : thread_([this, interval] {
        do {
          peak_ = std::max(peak_, ResidentBytes());
        } while (!stopping_.WaitForNotificationWithTimeout(interval));
      }) {}

int64_t MemorySampler::Stop() {
  if (thread_.joinable()) {
    stopping_.Notify();
    thread_.join();
    peak_ = std::max(peak_, ResidentBytes());
  }
  return peak_;
}

}  // namespace optfarm::benchmark
