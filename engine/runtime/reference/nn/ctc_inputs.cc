#include "engine/runtime/reference/nn/ctc_inputs.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {

absl::StatusOr<std::vector<int64_t>> ReadSequenceLengths(
    const Tensor& inputs, const Tensor& lengths) {
  OPTFARM_RETURN_IF_ERROR(RequireRank(inputs, "inputs", 3));
  OPTFARM_RETURN_IF_ERROR(
      RequireShape(lengths, "sequence_length", Shape{inputs.dim(1)}));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> steps, lengths.AsInt64s());
  for (const int64_t length : steps) {
    if (length < 0 || length > inputs.dim(0) || inputs.dim(2) < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a sequence of length ", length,
          " does not lie within inputs of shape ", inputs.shape().ToString()));
    }
  }
  return steps;
}

}  // namespace optfarm::runtime
