// Working memory of kernels that is no tensor: patches of a convolution, packed
// blocks of a matrix. It counts against the run's budget before it is taken,
// and a run keeps what it is done with for the next run, so that a run like the
// one before allocates nothing.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_SCRATCH_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "engine/runtime/core/memory_budget.h"

namespace optfarm::runtime {

// Pieces that nobody uses at the moment. THREADS: any.
class ScratchPool {
 public:
  // UNITS: bytes; pieces beyond this go back to the system at once.
  static constexpr int64_t kLargestKept = int64_t{4} << 20;

  ScratchPool() = default;
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  struct Piece {
    void* memory = nullptr;
    // UNITS: bytes.
    int64_t size = 0;
  };
  // A piece of at least `bytes`, aligned to 64; without memory when there is
  // none to be had.
  Piece Take(int64_t bytes);
  void Return(Piece piece);

 private:
  absl::Mutex mutex_;
  std::vector<Piece> free_ ABSL_GUARDED_BY(mutex_);
};

// Puts this thread over a pool as long as it lives; nullptr: over none. Scopes
// nest; only the innermost counts.
class ScratchScope {
 public:
  explicit ScratchScope(ScratchPool* pool);
  ~ScratchScope();
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

  // nullptr when this thread stands over none.
  static ScratchPool* Current();

 private:
  ScratchPool* const outer_;
};

// Bytes of working memory, given back when it goes.
class ScratchBytes {
 public:
  // Throws std::bad_alloc when the budget or the system has no more: the
  // executor makes ResourceExhausted of it.
  explicit ScratchBytes(int64_t bytes);
  ~ScratchBytes();
  ScratchBytes(const ScratchBytes&) = delete;
  ScratchBytes& operator=(const ScratchBytes&) = delete;

  void* data() const { return piece_.memory; }

 private:
  ScratchPool* const pool_;
  const std::shared_ptr<MemoryBudget> budget_;
  ScratchPool::Piece piece_;
};

// `count` elements, not initialized.
template <typename T>
class Scratch {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  explicit Scratch(int64_t count)
      : bytes_(count * static_cast<int64_t>(sizeof(T))), count_(count) {}

  T* data() const { return static_cast<T*>(bytes_.data()); }
  T& operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return count_; }
  absl::Span<T> span() const {
    return absl::MakeSpan(data(), static_cast<size_t>(count_));
  }

 private:
  ScratchBytes bytes_;
  int64_t count_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_SCRATCH_H_
