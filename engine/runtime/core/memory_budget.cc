#include "engine/runtime/core/memory_budget.h"

namespace optfarm::runtime {
namespace {

thread_local const std::shared_ptr<MemoryBudget>* current = nullptr;

}  // namespace

bool MemoryBudget::Take(int64_t bytes) {
  int64_t used = used_.load();
  do {
    if (bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  used += bytes;
  int64_t peak = peak_.load();
  while (used > peak && !peak_.compare_exchange_weak(peak, used)) {
  }
  return true;
}

BudgetScope::BudgetScope(std::shared_ptr<MemoryBudget> budget)
    : budget_(std::move(budget)), outer_(current) {
  current = budget_ == nullptr ? nullptr : &budget_;
}

BudgetScope::~BudgetScope() { current = outer_; }

const std::shared_ptr<MemoryBudget>* BudgetScope::Current() { return current; }

}  // namespace optfarm::runtime
