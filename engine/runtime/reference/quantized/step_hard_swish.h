// HardSwish of 8-bit values in TensorFlow Lite's arithmetic of 16 bits.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_STEP_HARD_SWISH_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_STEP_HARD_SWISH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"

namespace optfarm::runtime {

// From floats that are multiples of `input_scale` to multiples of
// `output_scale`. ERRORS: InvalidArgument unless both are above 0, and a step
// of the input is less than 128 of the output.
absl::StatusOr<std::unique_ptr<Kernel>> MakeStepHardSwish(float input_scale,
                                                          float output_scale);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_STEP_HARD_SWISH_H_
