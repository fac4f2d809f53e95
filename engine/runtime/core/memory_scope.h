// Where Tensor::Allocate takes memory from, thread by thread. tensor.cc asks
// here, so that tensors need not know of runs (run_memory.h).

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_SCOPE_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_SCOPE_H_

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::runtime {

class Shape;
class Tensor;

// Makes tensors. THREADS: of one thread at a time.
class TensorMemory {
 public:
  virtual ~TensorMemory() = default;
  // ERRORS: as Tensor::Allocate.
  virtual absl::StatusOr<Tensor> Allocate(tensorflow::DataType dtype,
                                          const Shape& shape) = 0;
};

// Has Tensor::Allocate of this thread ask `memory` as long as it lives;
// nullptr: each tensor has memory of its own. Scopes nest; only the innermost
// counts.
class MemoryScope {
 public:
  explicit MemoryScope(TensorMemory* memory);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  static TensorMemory* Current();

 private:
  TensorMemory* const outer_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_MEMORY_SCOPE_H_
