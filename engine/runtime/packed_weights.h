// Weights in the order in which fast kernels read them, kept so that sessions
// over one model have them once.

#ifndef OPTFARM_ENGINE_RUNTIME_PACKED_WEIGHTS_H_
#define OPTFARM_ENGINE_RUNTIME_PACKED_WEIGHTS_H_

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

// THREADS: may be used from many threads at once; who asks for what is being
// packed waits.
class PackedWeights {
 public:
  // What `pack` made of `weights` when it was first asked for in `layout`; a
  // failure is not kept.
  // REQUIRES: the buffer of `weights` lives as long as this, or until Clear;
  // `layout` says all that the packed form depends on besides the weights.
  absl::StatusOr<Tensor> FindOrPack(
      const Tensor& weights, absl::string_view layout,
      absl::FunctionRef<absl::StatusOr<Tensor>()> pack);

  // Forgets everything; who has packed weights keeps them.
  void Clear();

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::pair<const void*, std::string>, Tensor> packed_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PACKED_WEIGHTS_H_
