// A layer of codes and what makes codes of its floats, as one step: the codes
// of a line are made when the layer lays it (int8_padded_rows.h), and those of
// the whole image are never stored.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_IMAGE_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_IMAGE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// Codes that are made of floats one by one, and what they stand for.
struct FloatCodes {
  Int8Stage quantize;
  Range range;
};

// A kernel whose input 0 is codes with their range behind.
class FloatImageLayer {
 public:
  virtual ~FloatImageLayer() = default;
  // False: it can do nothing with floats whose codes have this range.
  virtual bool MayTakeFloats(Range range) const = 0;
  // Computes the outputs from an image of floats, the only input. False, and
  // nothing is computed: it has no code for such an image.
  // ERRORS: those of allocating the outputs.
  virtual absl::StatusOr<bool> ComputeFloats(const FloatCodes& codes,
                                             KernelContext* context) const = 0;
};

// The two kernels; `codes` and `floats` are what theirs say of them.
struct Int8ImageParts {
  std::unique_ptr<Kernel> quantize;
  std::unique_ptr<Kernel> layer;
  const FloatCodes* codes = nullptr;
  const FloatImageLayer* floats = nullptr;
};

// Input: the floats. Outputs: the layer's.
std::unique_ptr<Kernel> MakeInt8ImageLayer(Int8ImageParts parts);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_IMAGE_H_
