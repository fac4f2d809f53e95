#include "engine/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "engine/runtime/memory_budget.h"
#include "engine/runtime/run_bounds.h"
#include "engine/runtime/run_memory.h"
#include "engine/runtime/scratch.h"

namespace optfarm::runtime {
namespace {

// A range's length in grains: some milliseconds, as long as a run that is to
// end may go on.
constexpr int64_t kMostGrains = 64;

constexpr size_t kCacheLine = 64;
// How often a thread looks for work, or for the end of others' work, before it
// sleeps: some tens of microseconds, which is more than lies between two ops of
// a run and less than sleeping and waking costs.
constexpr int kLooks = 2000;
// Ranges that are taken by a bit of their own.
constexpr int64_t kMostBits = 64;

// Tells the processor that this thread only waits.
void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// One ParallelFor in progress. A thread takes the range that has its own number
// if it can, so that what one op left in its cache serves the next, and then
// any other; which items a range has does not depend on who takes it.
struct Job {
  absl::FunctionRef<void(int64_t, int64_t)> body;
  int64_t count;
  int64_t range;
  int64_t ranges;
  // Bit i: nobody has taken range i. Only for up to kMostBits ranges.
  alignas(kCacheLine) std::atomic<uint64_t> free{0};
  // The next range, where there are more.
  std::atomic<int64_t> next{0};
  alignas(kCacheLine) std::atomic<int64_t> done{0};
  // Pool threads that may still look at this job.
  std::atomic<int> visitors{0};
  // What the first range that failed threw; its writer has set `failed`.
  alignas(kCacheLine) std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;
  // What the caller stands under holds for whoever helps.
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  const RunBounds* bounds = BoundsScope::Current();
  ScratchPool* scratch = ScratchScope::Current();

  Job(absl::FunctionRef<void(int64_t, int64_t)> work, int64_t items,
      int64_t items_a_range, int64_t range_count)
      : body(work),
        count(items),
        range(items_a_range),
        ranges(range_count),
        free(range_count >= kMostBits ? ~uint64_t{0}
                                      : (uint64_t{1} << range_count) - 1) {}

  bool HasFreeRange() const {
    return ranges <= kMostBits ? free.load() != 0 : next.load() < ranges;
  }

  // -1 when none is left.
  int64_t Take(int thread) {
    if (ranges > kMostBits) {
      const int64_t taken = next.fetch_add(1);
      return taken < ranges ? taken : -1;
    }
    uint64_t left = free.load();
    while (left != 0) {
      const uint64_t own = thread < ranges ? uint64_t{1} << thread : 0;
      const uint64_t bit = (left & own) != 0 ? own : left & (~left + 1);
      if (free.compare_exchange_weak(left, left & ~bit)) {
        return std::countr_zero(bit);
      }
    }
    return -1;
  }

  // Runs ranges until none is left.
  void Work(int thread) {
    for (int64_t i; (i = Take(thread)) >= 0;) {
      if (!failed.load(std::memory_order_relaxed)) RunRange(i);
      done.fetch_add(1, std::memory_order_release);
    }
  }

  void Help(int thread) {
    const BoundsScope bounds_scope(bounds);
    const ScratchScope scratch_scope(scratch);
    if (budget == nullptr) return Work(thread);
    const BudgetScope budget_scope(*budget);
    Work(thread);
  }

  // An exception (there is no memory, the run is to end) is the caller's,
  // whoever meets it.
  void RunRange(int64_t i) {
    try {
      LeaveIfRunEnded();
      body(i * range, std::min(count, (i + 1) * range));
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }

  bool IsDone() const {
    return done.load(std::memory_order_acquire) == ranges &&
           visitors.load(std::memory_order_acquire) == 0;
  }
};

}  // namespace

struct ThreadPool::State {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::deque<Job*> jobs ABSL_GUARDED_BY(mutex);
  // The number of jobs, or stopping: what a thread that is awake looks at.
  alignas(kCacheLine) std::atomic<int> wanted{0};
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  int sleepers ABSL_GUARDED_BY(mutex) = 0;
  // Looking for work is for threads that have a processor to themselves.
  int looks = 0;
  std::vector<std::thread> threads;

  void Loop(int thread) {
    while (true) {
      for (int i = 0; i < looks && wanted.load() == 0; ++i) Pause();
      Job* job = nullptr;
      {
        absl::MutexLock lock(&mutex);
        ++sleepers;
        while (!stopping && jobs.empty()) changed.Wait(&mutex);
        --sleepers;
        if (stopping) return;
        job = jobs.front();
        job->visitors.fetch_add(1);
        if (!job->HasFreeRange()) Remove(job);
      }
      job->Help(thread);
      Retire(job);
      job->visitors.fetch_sub(1, std::memory_order_release);
    }
  }

  void Add(Job* job) {
    absl::MutexLock lock(&mutex);
    jobs.push_back(job);
    wanted.fetch_add(1);
    if (sleepers > 0) changed.SignalAll();
  }

  // Takes a job without free ranges out of the queue.
  void Retire(Job* job) {
    absl::MutexLock lock(&mutex);
    Remove(job);
  }

  void Remove(Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto it = std::find(jobs.begin(), jobs.end(), job);
    if (it == jobs.end()) return;
    jobs.erase(it);
    wanted.fetch_sub(1);
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads), state_(std::make_unique<State>()) {
  OPTFARM_CHECK(threads >= 1);
  if (static_cast<unsigned>(threads) <= std::thread::hardware_concurrency()) {
    state_->looks = kLooks;
  }
  // Fewer threads than wanted compute the same; none at all leave the caller.
  try {
    state_->threads.reserve(threads - 1);
    for (int i = 1; i < threads; ++i) {
      state_->threads.emplace_back(
          [state = state_.get(), i] { state->Loop(i); });
    }
  } catch (const std::exception&) {
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    state_->wanted.fetch_add(1);
    state_->changed.SignalAll();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

absl::Status ThreadPool::SetAffinity(absl::Span<const int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int processor : processors) {
    if (processor < 0 || processor >= CPU_SETSIZE) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no processor ", processor));
    }
    CPU_SET(processor, &set);
  }
  for (std::thread& thread : state_->threads) {
    if (pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set) !=
        0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the system does not let threads run on processors ",
                       absl::StrJoin(processors, ",")));
    }
  }
  return absl::OkStatus();
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  // A few ranges per thread even out differences; one thread needs one range,
  // were it not that between ranges the run may be ended.
  const int64_t wanted = threads_ == 1 ? 1 : 4 * int64_t{threads_};
  const int64_t most =
      std::min(kMostGrains, std::numeric_limits<int64_t>::max() / grain);
  const int64_t range =
      std::max(grain, std::min((count + wanted - 1) / wanted, most * grain));
  const int64_t ranges = (count + range - 1) / range;
  // Which tensors bodies make on which thread is different every time.
  const MemoryScope no_places(nullptr);
  if (threads_ == 1 || ranges == 1) {
    for (int64_t begin = 0; begin < count; begin += range) {
      LeaveIfRunEnded();
      body(begin, std::min(count - begin, range) + begin);
    }
    return;
  }
  Job job(body, count, range, ranges);
  state_->Add(&job);
  job.Work(0);
  state_->Retire(&job);
  // The last ranges of others are short: waiting awake beats a sleep.
  for (int i = 0; !job.IsDone(); ++i) {
    if (i < state_->looks) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace optfarm::runtime
