// What the decoders of connectionist temporal classification read.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CTC_INPUTS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CTC_INPUTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

// How many steps of each sequence count. `inputs` is [steps, batch, classes],
// `lengths` [batch].
// ERRORS: InvalidArgument for other shapes, no classes, or a length that the
// inputs do not have.
absl::StatusOr<std::vector<int64_t>> ReadSequenceLengths(const Tensor& inputs,
                                                         const Tensor& lengths);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CTC_INPUTS_H_
