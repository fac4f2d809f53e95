#include "engine/runtime/core/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace optfarm::runtime {
namespace {

constexpr int64_t kAlignment = 64;
// Pieces in sizes of a quarter of a power of two: those of similar needs are
// exchanged, and little of a piece is left unused.
int64_t SizeFor(int64_t bytes) {
  int64_t step = kAlignment;
  while (bytes > 4 * step) step *= 2;
  return (std::max<int64_t>(bytes, 1) + step - 1) / step * step;
}

thread_local ScratchPool* current = nullptr;

std::shared_ptr<MemoryBudget> CurrentBudget() {
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  return budget == nullptr ? nullptr : *budget;
}

}  // namespace

ScratchPool::~ScratchPool() {
  for (const Piece& piece : free_) std::free(piece.memory);
}

ScratchPool::Piece ScratchPool::Take(int64_t bytes) {
  const int64_t size = SizeFor(bytes);
  {
    absl::MutexLock lock(&mutex_);
    const auto it =
        std::find_if(free_.begin(), free_.end(),
                     [size](const Piece& piece) { return piece.size == size; });
    if (it != free_.end()) {
      const Piece piece = *it;
      *it = free_.back();
      free_.pop_back();
      return piece;
    }
  }
  return {std::aligned_alloc(kAlignment, static_cast<size_t>(size)), size};
}

void ScratchPool::Return(Piece piece) {
  if (piece.size <= kLargestKept) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(piece);
    return;
  }
  std::free(piece.memory);
}

ScratchScope::ScratchScope(ScratchPool* pool) : outer_(current) {
  current = pool;
}

ScratchScope::~ScratchScope() { current = outer_; }

ScratchPool* ScratchScope::Current() { return current; }

ScratchBytes::ScratchBytes(int64_t bytes)
    : pool_(current), budget_(CurrentBudget()) {
  // Sums and products of sizes beyond it are not to be trusted.
  constexpr int64_t kMost = int64_t{1} << 40;
  if (bytes < 0 || bytes > kMost) throw std::bad_alloc();
  const int64_t size = SizeFor(bytes);
  if (budget_ != nullptr && !budget_->Take(size)) throw std::bad_alloc();
  piece_ = pool_ != nullptr
               ? pool_->Take(bytes)
               : ScratchPool::Piece{
                     std::aligned_alloc(kAlignment, static_cast<size_t>(size)),
                     size};
  if (piece_.memory != nullptr) return;
  if (budget_ != nullptr) budget_->Give(size);
  throw std::bad_alloc();
}

ScratchBytes::~ScratchBytes() {
  if (budget_ != nullptr) budget_->Give(piece_.size);
  if (pool_ != nullptr) {
    pool_->Return(piece_);
  } else {
    std::free(piece_.memory);
  }
}

}  // namespace optfarm::runtime
