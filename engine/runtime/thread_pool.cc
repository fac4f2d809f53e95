#include "engine/runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
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
#include "engine/runtime/scratch.h"

namespace optfarm::runtime {
namespace {

// A range's length in grains: some milliseconds, as long as a run that is to
// end may go on.
constexpr int64_t kMostGrains = 64;

// One ParallelFor in progress. Ranges are taken by number, so that who is fast
// takes more; which items a range has does not depend on who takes it.
struct Job {
  absl::FunctionRef<void(int64_t, int64_t)> body;
  int64_t count;
  int64_t range;
  int64_t ranges;
  std::atomic<int64_t> next{0};
  std::atomic<int64_t> done{0};
  // Pool threads that may still look at this job.
  std::atomic<int> visitors{0};
  // What the first range that failed threw; its writer has set `failed`.
  std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;
  // What the caller stands under holds for whoever helps.
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  const RunBounds* bounds = BoundsScope::Current();
  ScratchPool* scratch = ScratchScope::Current();

  // Runs ranges until none is left.
  void Work() {
    for (int64_t i; (i = next.fetch_add(1)) < ranges;) {
      if (!failed.load(std::memory_order_relaxed)) RunRange(i);
      done.fetch_add(1, std::memory_order_release);
    }
  }

  void Help() {
    const BoundsScope bounds_scope(bounds);
    const ScratchScope scratch_scope(scratch);
    if (budget == nullptr) return Work();
    const BudgetScope budget_scope(*budget);
    Work();
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
};

}  // namespace

struct ThreadPool::State {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::deque<Job*> jobs ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;

  void Loop() {
    while (true) {
      Job* job = nullptr;
      {
        absl::MutexLock lock(&mutex);
        while (!stopping && jobs.empty()) changed.Wait(&mutex);
        if (stopping) return;
        job = jobs.front();
        job->visitors.fetch_add(1);
        if (job->next.load() >= job->ranges) jobs.pop_front();
      }
      job->Help();
      Retire(job);
      job->visitors.fetch_sub(1, std::memory_order_release);
    }
  }

  // Takes a job without free ranges out of the queue.
  void Retire(Job* job) {
    absl::MutexLock lock(&mutex);
    const auto it = std::find(jobs.begin(), jobs.end(), job);
    if (it != jobs.end()) jobs.erase(it);
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads), state_(std::make_unique<State>()) {
  OPTFARM_CHECK(threads >= 1);
  // Fewer threads than wanted compute the same; none at all leave the caller.
  try {
    state_->threads.reserve(threads - 1);
    for (int i = 1; i < threads; ++i) {
      state_->threads.emplace_back([state = state_.get()] { state->Loop(); });
    }
  } catch (const std::exception&) {
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
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
  if (threads_ == 1 || ranges == 1) {
    for (int64_t begin = 0; begin < count; begin += range) {
      LeaveIfRunEnded();
      body(begin, std::min(count - begin, range) + begin);
    }
    return;
  }
  Job job{body, count, range, ranges};
  {
    absl::MutexLock lock(&state_->mutex);
    state_->jobs.push_back(&job);
    state_->changed.SignalAll();
  }
  job.Work();
  state_->Retire(&job);
  // The last ranges of others are short: waiting awake beats a sleep.
  while (job.done.load(std::memory_order_acquire) < ranges ||
         job.visitors.load(std::memory_order_acquire) > 0) {
    std::this_thread::yield();
  }
  if (job.error != nullptr) std::rethrow_exception(job.error);
}

}  // namespace optfarm::runtime
