#include "engine/runtime/fusion/joined_part.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optfarm::runtime {

absl::StatusOr<Tensor*> JoinableKernel::AllocateWhole(
    DataType dtype, const Shape& shape, KernelContext* context) const {
  if (!is_part()) return context->AllocateOutput(0, dtype, shape);
  const int64_t dims[] = {shape.dim(0), shape.dim(1), shape.dim(2), part_.all};
  OPTFARM_ASSIGN_OR_RETURN(const Shape joined, Shape::FromDims(dims));
  if (!part_.comes_later) return context->AllocateOutput(0, dtype, joined);
  const int last = context->num_inputs() - 1;
  const Tensor& others = context->input(last);
  if (others.shape() != joined) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value of shape ", shape.ToString(),
                     " cannot be joined along dimension 3 to others of shape ",
                     others.shape().ToString()));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, context->ForwardOrAllocateOutput(0, last, dtype, joined));
  if (out->raw() != others.raw()) {
    std::memcpy(out->raw(), others.raw(),
                static_cast<size_t>(others.TotalBytes()));
  }
  return out;
}

absl::StatusOr<FloatPlace> JoinableKernel::AllocatePart(
    const Shape& shape, KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           AllocateWhole(tensorflow::DT_FLOAT, shape, context));
  return FloatPlace{out->data<float>() + part_.begin, out->dim(3)};
}

absl::StatusOr<QuantizedPlace> JoinableKernel::AllocateQuantizedPart(
    const Shape& shape, KernelContext* context) const {
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out, AllocateWhole(tensorflow::DT_QUINT8, shape, context));
  return QuantizedPlace{out->data<uint8_t>() + part_.begin, out->dim(3)};
}

absl::Status JoinableKernel::RunSteps(const StepChain& steps,
                                      KernelContext* context) const {
  if (!is_part()) return steps.Run(context);
  std::vector<Tensor> inputs;
  const int count = context->num_inputs() - other_inputs();
  for (int i = 0; i < count; ++i) inputs.push_back(context->input(i));
  std::vector<Tensor> outputs(context->num_outputs());
  KernelContext inner =
      context->WithTensors(absl::MakeSpan(inputs), absl::MakeSpan(outputs));
  OPTFARM_RETURN_IF_ERROR(steps.Run(&inner));
  const Tensor& value = outputs[0];
  const DataType dtype =
      QuantizedRange() ? tensorflow::DT_QUINT8 : tensorflow::DT_FLOAT;
  if (value.dtype() != dtype || value.rank() != 4 ||
      value.dim(3) > part_.all - part_.begin) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value ", value.DebugString(0),
                     " cannot be joined to others along dimension 3"));
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                           AllocateWhole(dtype, value.shape(), context));
  const auto size = static_cast<int64_t>(ElementSize(dtype));
  const int64_t bytes = value.dim(3) * size;
  const auto* from = static_cast<const char*>(value.raw());
  char* to = static_cast<char*>(out->raw()) + part_.begin * size;
  for (int64_t i = 0; i * bytes < value.TotalBytes(); ++i) {
    std::copy_n(from + i * bytes, bytes, to + i * part_.all * size);
  }
  for (size_t i = 1; i < outputs.size(); ++i) {
    context->SetOutput(static_cast<int>(i), std::move(outputs[i]));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
