#include "engine/runtime/fast/joined_part.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optfarm::runtime {

absl::StatusOr<FloatPlace> JoinableKernel::AllocatePart(
    const Shape& shape, KernelContext* context) const {
  if (!is_part()) {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, tensorflow::DT_FLOAT, shape));
    return FloatPlace{out->data<float>(), shape.dim(3)};
  }
  const int64_t dims[] = {shape.dim(0), shape.dim(1), shape.dim(2), part_.all};
  OPTFARM_ASSIGN_OR_RETURN(const Shape joined, Shape::FromDims(dims));
  Tensor* out = nullptr;
  if (!part_.comes_later) {
    OPTFARM_ASSIGN_OR_RETURN(
        out, context->AllocateOutput(0, tensorflow::DT_FLOAT, joined));
  } else {
    const int last = context->num_inputs() - 1;
    const Tensor& others = context->input(last);
    if (others.shape() != joined) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a value of shape ", shape.ToString(),
          " cannot be joined along dimension 3 to others of shape ",
          others.shape().ToString()));
    }
    OPTFARM_ASSIGN_OR_RETURN(out, context->ForwardOrAllocateOutput(
                                      0, last, tensorflow::DT_FLOAT, joined));
    if (out->raw() != others.raw()) {
      std::memcpy(out->raw(), others.raw(),
                  static_cast<size_t>(others.TotalBytes()));
    }
  }
  return FloatPlace{out->data<float>() + part_.begin, part_.all};
}

absl::Status JoinableKernel::RunSteps(const StepChain& steps,
                                      KernelContext* context) const {
  if (!is_part()) return steps.Run(context);
  std::vector<Tensor> inputs;
  const int count = context->num_inputs() - (part_.comes_later ? 1 : 0);
  for (int i = 0; i < count; ++i) inputs.push_back(context->input(i));
  std::vector<Tensor> outputs(1);
  KernelContext inner =
      context->WithTensors(absl::MakeSpan(inputs), absl::MakeSpan(outputs));
  OPTFARM_RETURN_IF_ERROR(steps.Run(&inner));
  const Tensor& value = outputs[0];
  if (value.dtype() != tensorflow::DT_FLOAT || value.rank() != 4 ||
      value.dim(3) > part_.all - part_.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value ", value.DebugString(0),
                     " cannot be joined to others along dimension 3"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const FloatPlace place,
                           AllocatePart(value.shape(), context));
  const int64_t channels = value.dim(3);
  const float* from = value.data<float>();
  for (int64_t i = 0; i * channels < value.num_elements(); ++i) {
    std::copy_n(from + i * channels, channels,
                place.data + i * place.pixel_stride);
  }
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
