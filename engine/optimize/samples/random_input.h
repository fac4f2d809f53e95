// Made-up values for a model that comes without data.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RANDOM_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RANDOM_INPUT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::optimize {

// ERRORS: InvalidArgument for an input of unknown shape, of too many elements,
// or of a dtype that no values can be made up for.
absl::Status CheckMakeUp(const ModelTensor& input);

// The same value for the same seed on every machine (dataset.h says which).
// REQUIRES: CheckMakeUp.
absl::StatusOr<runtime::Tensor> RandomValue(const ModelTensor& input,
                                            uint64_t seed);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RANDOM_INPUT_H_
