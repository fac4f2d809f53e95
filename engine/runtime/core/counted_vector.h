// Vectors of a kernel's own that grow with its data: they count against the
// run's budget before they take memory. Lists of fixed small size need not.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_COUNTED_VECTOR_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_COUNTED_VECTOR_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/runtime/core/memory_budget.h"

namespace optfarm::runtime {

// Takes from the budget that its thread stood under when it was made. Throws
// std::bad_alloc beyond it.
template <typename T>
class CountingAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  CountingAllocator() {
    const std::shared_ptr<MemoryBudget>* current = BudgetScope::Current();
    if (current != nullptr) budget_ = *current;
  }
  template <typename U>
  CountingAllocator(const CountingAllocator<U>& other)
      : budget_(other.budget()) {}

  T* allocate(size_t count) {
    if (count >
        static_cast<size_t>(std::numeric_limits<int64_t>::max()) / sizeof(T)) {
      throw std::bad_alloc();
    }
    const auto bytes = static_cast<int64_t>(count * sizeof(T));
    if (budget_ != nullptr && !budget_->Take(bytes)) throw std::bad_alloc();
    try {
      return std::allocator<T>().allocate(count);
    } catch (...) {
      if (budget_ != nullptr) budget_->Give(bytes);
      throw;
    }
  }
  void deallocate(T* memory, size_t count) {
    std::allocator<T>().deallocate(memory, count);
    if (budget_ != nullptr) {
      budget_->Give(static_cast<int64_t>(count * sizeof(T)));
    }
  }

  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  template <typename U>
  bool operator==(const CountingAllocator<U>& other) const {
    return budget_ == other.budget();
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
};

template <typename T>
using CountedVector = std::vector<T, CountingAllocator<T>>;

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_COUNTED_VECTOR_H_
