// An int8 image with its padding around it: all windows lie inside of it, and
// those of one row of the output at one stride. For kernels that read strided
// rows (ActivationLayout::kStrided).

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_IMAGE_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_IMAGE_H_

#include <cstdint>
#include <optional>

#include "engine/runtime/core/scratch.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/int8_gemm.h"

namespace optfarm::runtime {

// OWNERSHIP: the values of `image` outlive it.
class Int8PaddedImage {
 public:
  // Copies, where there is padding. What it throws is ScratchBytes'.
  Int8PaddedImage(const Int8Activations& image, ThreadPool* pool);
  Int8PaddedImage(const Int8PaddedImage&) = delete;
  Int8PaddedImage& operator=(const Int8PaddedImage&) = delete;

  // Its windows have no padding.
  const Int8Activations& padded() const { return padded_; }

 private:
  void PadRow(const Int8Activations& image, int64_t row) const;

  Int8Activations padded_;
  std::optional<Scratch<uint8_t>> values_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_PADDED_IMAGE_H_
