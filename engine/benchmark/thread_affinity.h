// The processors that the calling thread may run on.

#ifndef OPTFARM_ENGINE_BENCHMARK_THREAD_AFFINITY_H_
#define OPTFARM_ENGINE_BENCHMARK_THREAD_AFFINITY_H_

#include <sched.h>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace optfarm::benchmark {

// Binds the calling thread to `processors` as long as it lives; to none in
// particular when they are empty. THREADS: goes where it was made.
class ThreadAffinity {
 public:
  explicit ThreadAffinity(absl::Span<const int> processors);
  ~ThreadAffinity();
  ThreadAffinity(const ThreadAffinity&) = delete;
  ThreadAffinity& operator=(const ThreadAffinity&) = delete;

  // ERRORS: InvalidArgument for processors that the system refuses.
  const absl::Status& status() const { return status_; }

 private:
  cpu_set_t before_;
  bool is_bound_ = false;
  absl::Status status_;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_THREAD_AFFINITY_H_
