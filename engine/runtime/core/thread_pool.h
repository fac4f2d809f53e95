// The threads that kernels share: a session's own, or one that the caller owns
// and gives to many sessions.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_THREAD_POOL_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"

namespace optfarm::runtime {

// THREADS: ParallelFor may be called from many threads at once, but not from
// inside a body.
class ThreadPool {
 public:
  // `threads` counts the caller: 1 runs everything in the caller. Has fewer
  // threads, and the same results, where the system gives no more.
  // REQUIRES: threads >= 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Lets the pool's own threads (the callers of ParallelFor are not among
  // them) run on these processors only.
  // ERRORS: InvalidArgument when the system refuses them.
  absl::Status SetAffinity(absl::Span<const int> processors);

  // Calls body(begin, end) for disjoint ranges that cover [0, count), possibly
  // at the same time, and returns when all are done. A range has at least
  // `grain` items, the last one excepted. The same count, grain and number of
  // threads give the same ranges. What a body throws is thrown here once those
  // that began are done; no others begin. Between ranges, of at most 64 grains,
  // it throws RunEnded when the caller's run is to end. Helping threads stand
  // under the caller's budget, bounds and working memory.
  void ParallelFor(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_THREAD_POOL_H_
