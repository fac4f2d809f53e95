#include "engine/runtime/core/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/core/memory_scope.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"

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
// Callers that are helped at the same time; what others do they do alone.
constexpr int kJobs = 8;

// Tells the processor that this thread only waits.
void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

using Body = absl::FunctionRef<void(int64_t, int64_t)>;

// Items in ranges whose lengths differ by one at most.
struct Ranges {
  int64_t count = 0;
  int64_t number = 0;

  int64_t Begin(int64_t i) const {
    return count / number * i + count % number * i / number;
  }
};

// UNITS: items of the longest range.
int64_t MostItems(int64_t grain) {
  return std::min(kMostGrains, std::numeric_limits<int64_t>::max() / grain) *
         grain;
}

Ranges Divide(int64_t count, int64_t grain, int64_t threads) {
  // What most calls come to: the divisions take longer than a few elements.
  constexpr int64_t kSurelyFew = 64;
  static_assert(kSurelyFew <= kMostGrains);
  if (count <= grain || (threads == 1 && count <= kSurelyFew)) {
    return {count, 1};
  }
  // A few ranges per thread even out differences; one thread needs one range,
  // were it not that between ranges the run may be ended.
  int64_t number = std::min(threads == 1 ? 1 : 4 * threads, count / grain);
  if (number > threads) number -= number % threads;
  const int64_t least = (count - 1) / MostItems(grain) + 1;
  return {count, std::max(number, least)};
}

// A place for one ParallelFor at a time. Each thread has a section of the
// ranges, neighbours of one another, and takes those of others only when it is
// done with its own: what one op left in a core's cache serves the next. Which
// items a range has does not depend on who takes it.
//
// A job is read by none but its caller and those who took a range, and does not
// end before they reported, so that nobody needs a lock.
class Job {
 public:
  explicit Job(int threads)
      : threads_(threads), sections_(std::make_unique<Section[]>(threads)) {}

  // Whether it is the caller's now, until Release.
  bool Claim() {
    return !is_claimed_.load(std::memory_order_relaxed) &&
           !is_claimed_.exchange(true);
  }
  void Release() { is_claimed_.store(false); }

  // REQUIRES: claimed. OWNERSHIP: `body` outlives the job.
  void Publish(const Body& body, Ranges ranges) {
    body_ = &body;
    ranges_ = ranges;
    // What the caller stands under holds for whoever helps.
    budget_ = BudgetScope::Current();
    bounds_ = BoundsScope::Current();
    scratch_ = ScratchScope::Current();
    failed_.store(false, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    for (int i = 0; i < threads_; ++i) {
      sections_[i].left.store(SectionBegin(i + 1) - SectionBegin(i),
                              std::memory_order_release);
    }
  }

  // Runs ranges until none is left; the number of those that it ran.
  int64_t Work(int thread) {
    int64_t ran = 0;
    for (int64_t i; (i = Take(thread)) >= 0; ++ran) RunRange(i);
    return ran;
  }

  // As Work, for those who are not the caller. Whether there was anything.
  bool Help(int thread) {
    const int64_t first = Take(thread);
    if (first < 0) return false;
    const int64_t ran = RunUnderScopes(first, thread);
    done_.fetch_add(ran, std::memory_order_release);
    return true;
  }

  // Whether all ranges are done of which the caller ran so many.
  bool IsDone(int64_t own) const {
    return done_.load(std::memory_order_acquire) + own == ranges_.number;
  }
  // REQUIRES: done.
  std::exception_ptr TakeError() { return std::exchange(error_, nullptr); }

 private:
  // Ranges that nobody has taken; below zero for none.
  struct Section {
    alignas(kCacheLine) std::atomic<int64_t> left{0};
  };

  int64_t SectionBegin(int64_t i) const {
    return ranges_.number * i / threads_;
  }

  // -1 when none is left. Only who takes a range may look at the job.
  int64_t Take(int thread) {
    for (int k = 0; k < threads_; ++k) {
      const int s = thread + k < threads_ ? thread + k : thread + k - threads_;
      std::atomic<int64_t>& left = sections_[s].left;
      if (left.load(std::memory_order_relaxed) <= 0) continue;
      const int64_t some = left.fetch_sub(1, std::memory_order_acq_rel);
      if (some > 0) return SectionBegin(s + 1) - some;
    }
    return -1;
  }

  int64_t RunUnderScopes(int64_t first, int thread) {
    const BoundsScope bounds_scope(bounds_);
    const ScratchScope scratch_scope(scratch_);
    std::optional<BudgetScope> budget_scope;
    if (budget_ != nullptr) budget_scope.emplace(*budget_);
    RunRange(first);
    return 1 + Work(thread);
  }

  // An exception (there is no memory, the run is to end) is the caller's,
  // whoever meets it.
  void RunRange(int64_t i) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      LeaveIfRunEnded();
      (*body_)(ranges_.Begin(i), ranges_.Begin(i + 1));
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }

  const int threads_;
  const std::unique_ptr<Section[]> sections_;
  alignas(kCacheLine) std::atomic<bool> is_claimed_{false};
  const Body* body_ = nullptr;
  Ranges ranges_;
  const std::shared_ptr<MemoryBudget>* budget_ = nullptr;
  const RunBounds* bounds_ = nullptr;
  ScratchPool* scratch_ = nullptr;
  // What the first range that failed threw; its writer has set `failed_`.
  std::atomic<bool> failed_{false};
  std::exception_ptr error_ = nullptr;
  // Ranges that helpers ran.
  alignas(kCacheLine) std::atomic<int64_t> done_{0};
};

}  // namespace

struct ThreadPool::State {
  std::deque<Job> jobs;
  // Counts what was published, and the end: what an idle thread looks at.
  alignas(kCacheLine) std::atomic<uint64_t> published{0};
  alignas(kCacheLine) std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false};
  absl::Mutex mutex;
  absl::CondVar changed;
  // Looking for work is for threads that have a processor to themselves.
  int looks = 0;
  std::vector<std::thread> threads;

  Job* Claim() {
    for (Job& job : jobs) {
      if (job.Claim()) return &job;
    }
    return nullptr;
  }

  // Wakes those who sleep. Who is about to has counted itself before it looks
  // a last time, so that one of the two sees the other.
  void Announce() {
    published.fetch_add(1);
    if (sleepers.load() == 0) return;
    const absl::MutexLock lock(&mutex);
    changed.SignalAll();
  }

  bool HelpAll(int thread) {
    bool has_helped = false;
    for (Job& job : jobs) has_helped |= job.Help(thread);
    return has_helped;
  }

  void Loop(int thread) {
    for (;;) {
      // Before it looks whether to stop: an end that comes later is counted
      // later, and keeps it from sleeping.
      const uint64_t seen = published.load();
      if (stopping.load()) return;
      if (HelpAll(thread)) continue;
      for (int i = 0; i < looks && published.load() == seen; ++i) Pause();
      if (published.load() == seen) Sleep(seen);
    }
  }

  void Sleep(uint64_t seen) {
    const absl::MutexLock lock(&mutex);
    sleepers.fetch_add(1);
    while (published.load() == seen) changed.Wait(&mutex);
    sleepers.fetch_sub(1);
  }
};

ThreadPool::ThreadPool(int threads)
    : threads_(threads), state_(std::make_unique<State>()) {
  OPTFARM_CHECK(threads >= 1);
  if (static_cast<unsigned>(threads) <= std::thread::hardware_concurrency()) {
    state_->looks = kLooks;
  }
  if (threads == 1) return;
  for (int i = 0; i < kJobs; ++i) state_->jobs.emplace_back(threads);
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
  state_->stopping.store(true);
  state_->Announce();
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
  const Ranges ranges = Divide(count, std::max<int64_t>(grain, 1), threads_);
  // Which tensors bodies make on which thread is different every time.
  const MemoryScope no_places(nullptr);
  if (ranges.number == 1) {
    LeaveIfRunEnded();
    return body(0, count);
  }
  Job* const job = state_->Claim();
  if (job == nullptr) {
    for (int64_t i = 0; i < ranges.number; ++i) {
      LeaveIfRunEnded();
      body(ranges.Begin(i), ranges.Begin(i + 1));
    }
    return;
  }
  job->Publish(body, ranges);
  state_->Announce();
  const int64_t own = job->Work(0);
  // The last ranges of others are short: waiting awake beats a sleep.
  for (int i = 0; !job->IsDone(own); ++i) {
    if (i < state_->looks) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
  const std::exception_ptr error = job->TakeError();
  job->Release();
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace optfarm::runtime
