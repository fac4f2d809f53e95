// Looks again and again at how much memory this process has: the system's own
// peak counts what was before, and cannot be reset everywhere.

#ifndef OPTFARM_ENGINE_BENCHMARK_MEMORY_SAMPLER_H_
#define OPTFARM_ENGINE_BENCHMARK_MEMORY_SAMPLER_H_

#include <cstdint>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace optfarm::benchmark {

// A thread that looks every `interval` from when it is made until Stop.
class MemorySampler {
 public:
  explicit MemorySampler(absl::Duration interval);
  ~MemorySampler() { Stop(); }
  MemorySampler(const MemorySampler&) = delete;
  MemorySampler& operator=(const MemorySampler&) = delete;

  // UNITS: bytes resident at the most that was seen, the last moment included.
  int64_t Stop();

 private:
  absl::Notification stopping_;
  int64_t peak_ = 0;
  std::thread thread_;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_MEMORY_SAMPLER_H_
