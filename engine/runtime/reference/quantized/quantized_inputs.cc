#include "engine/runtime/reference/quantized/quantized_inputs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<float> InputFloat(const KernelContext& context, int index) {
  OPTFARM_RETURN_IF_ERROR(
      RequireInputDtype(context, index, tensorflow::DT_FLOAT));
  const Tensor& tensor = context.input(index);
  if (tensor.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", index,
                     " is one end of a range and must be one "
                     "number, got ",
                     tensor.DebugString(0)));
  }
  const float value = tensor.data<float>()[0];
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", index, " is one end of a range, got ", value,
                     "; a NaN, an infinity or an empty tensor came in before"));
  }
  return value;
}

}  // namespace

absl::Status RequireInputDtype(const KernelContext& context, int index,
                               DataType dtype) {
  return RequireDtype(context.input(index), absl::StrCat("input ", index),
                      dtype);
}

absl::StatusOr<Range> InputRange(const KernelContext& context, int min_index,
                                 int stride) {
  Range range;
  OPTFARM_ASSIGN_OR_RETURN(range.min, InputFloat(context, min_index));
  OPTFARM_ASSIGN_OR_RETURN(range.max, InputFloat(context, min_index + stride));
  if (range.min > range.max) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs ", min_index, " and ", min_index + stride,
                     " are a range, but its min ", range.min,
                     " is above its max ", range.max));
  }
  return range;
}

absl::StatusOr<std::vector<Range>> InputRanges(const KernelContext& context,
                                               int min_index,
                                               int64_t channels) {
  const Tensor &min = context.input(min_index),
               &max = context.input(min_index + 1);
  if (min.num_elements() == 1 && max.num_elements() == 1) {
    OPTFARM_ASSIGN_OR_RETURN(const Range range, InputRange(context, min_index));
    return std::vector<Range>{range};
  }
  OPTFARM_RETURN_IF_ERROR(
      RequireInputDtype(context, min_index, tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(
      RequireInputDtype(context, min_index + 1, tensorflow::DT_FLOAT));
  if (min.num_elements() != channels || max.num_elements() != channels) {
    return absl::InvalidArgumentError(
        absl::StrCat("inputs ", min_index, " and ", min_index + 1, " are ",
                     min.num_elements(), " and ", max.num_elements(),
                     " ends of ranges; expected one, or one for each of ",
                     channels, " channels"));
  }
  std::vector<Range> ranges;
  for (int64_t i = 0; i < channels; ++i) {
    const Range range = {min.data<float>()[i], max.data<float>()[i]};
    if (!std::isfinite(range.min) || !std::isfinite(range.max) ||
        range.min > range.max) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range of channel ", i, " is ", range.min, " to ",
                       range.max, "; expected finite numbers in order"));
    }
    ranges.push_back(range);
  }
  return ranges;
}

void SetOutputRange(KernelContext* context, int first, Range range) {
  context->SetOutput(first, Tensor::Scalar(range.min));
  context->SetOutput(first + 1, Tensor::Scalar(range.max));
}

absl::StatusOr<int32_t> ZeroPointOf(Range range, int32_t most) {
  const int64_t q = QuantizeUnclamped<uint8_t>(0.0f, range);
  if (q < -most || q > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the range [", range.min, ", ", range.max,
                     "] is too far from zero for 8-bit arithmetic"));
  }
  return static_cast<int32_t>(q);
}

int32_t MostZero(int64_t depth) {
  constexpr int64_t kLeast = 1024, kMost = 32000;
  const int64_t fits = (int64_t{1} << 31) / (256 * std::max<int64_t>(depth, 1));
  return static_cast<int32_t>(std::clamp(fits - 255, kLeast, kMost));
}

}  // namespace optfarm::runtime
