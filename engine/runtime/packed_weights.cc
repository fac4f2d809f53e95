#include "engine/runtime/packed_weights.h"

namespace optfarm::runtime {

absl::StatusOr<Tensor> PackedWeights::FindOrPack(
    const Tensor& weights, absl::string_view layout,
    absl::FunctionRef<absl::StatusOr<Tensor>()> pack) {
  absl::MutexLock lock(&mutex_);
  Tensor& packed = packed_[{weights.raw(), std::string(layout)}];
  if (packed.has_value()) return packed;
  absl::StatusOr<Tensor> made = pack();
  if (made.ok()) packed = *made;
  return made;
}

void PackedWeights::Clear() {
  absl::MutexLock lock(&mutex_);
  packed_.clear();
}

}  // namespace optfarm::runtime
