// How many bytes of tensors somebody may take: a run, or a model while it is
// loaded. Counts what Tensor::Allocate gives to the threads that stand under
// the budget, until the last copy of each tensor is gone, and kernels' working
// memory (scratch.h). Lists of the length of one line or one window, which
// kernels keep otherwise, are not counted.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_BUDGET_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace optfarm::runtime {

// UNITS: bytes. THREADS: all methods may be called from many threads at once.
class MemoryBudget {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  explicit MemoryBudget(int64_t limit) : limit_(limit) {}

  // False when the limit would be passed; nothing is taken then.
  bool Take(int64_t bytes);
  void Give(int64_t bytes) { used_.fetch_sub(bytes); }

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(); }
  // The most that was taken at a time.
  int64_t peak() const { return peak_.load(); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> peak_{0};
};

// Puts this thread under a budget as long as it lives; nullptr: under none.
// Scopes nest; only the innermost counts.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<MemoryBudget> budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

  // nullptr when this thread stands under none.
  static const std::shared_ptr<MemoryBudget>* Current();

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  const std::shared_ptr<MemoryBudget>* const outer_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_BUDGET_H_
