#include "engine/runtime/fusion/qdq/qdq_kernel.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

constexpr uint8_t kSign = 0x80;
// UNITS: bytes that are worth another thread.
constexpr int64_t kFlipGrain = 64 * 1024;

}  // namespace

void FlipSigns(const uint8_t* in, int64_t count, ThreadPool* pool,
               uint8_t* out) {
  pool->ParallelFor(count, kFlipGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i] = static_cast<uint8_t>(in[i] ^ kSign);
    }
  });
}

void QdqKernel::Read(int i, const KernelContext& context,
                     Values* values) const {
  const Tensor& tensor = context.input(i);
  values->data = static_cast<const uint8_t*>(tensor.raw());
  if (!in(i).is_signed() || held_[i]) return;
  values->copy.emplace(tensor.num_elements());
  FlipSigns(values->data, tensor.num_elements(), context.pool(),
            values->copy->data());
  values->data = values->copy->data();
}

void QdqKernel::Finish(Tensor* made, KernelContext* context) const {
  if (!out_.is_signed() || is_out_held_) return;
  auto* values = static_cast<uint8_t*>(made->raw());
  FlipSigns(values, made->num_elements(), context->pool(), values);
}

absl::Status QdqKernel::Compute(KernelContext* context) const {
  for (int i = 0; i < in_count(); ++i) {
    if (context->num_inputs() == in_count() &&
        context->input(i).dtype() == in(i).dtype) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " is not the quantized tensor that the node",
                     " was loaded for"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const bool is_done, ComputeUnsigned(context));
  if (!is_done) return RunSteps(context);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> QdqKernel::InputOfSteps(int i,
                                               KernelContext* context) const {
  const Tensor& tensor = context->input(i);
  const int64_t count = tensor.num_elements();
  if (steps_.read_values) {
    if (!held_[i] || !in(i).is_signed()) return tensor;
    OPTFARM_ASSIGN_OR_RETURN(Tensor values,
                             Tensor::Allocate(tensor.dtype(), tensor.shape()));
    FlipSigns(static_cast<const uint8_t*>(tensor.raw()), count, context->pool(),
              static_cast<uint8_t*>(values.raw()));
    return values;
  }
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor floats, Tensor::Allocate(tensorflow::DT_FLOAT, tensor.shape()));
  Values values;
  Read(i, *context, &values);
  const int32_t zero = in(i).unsigned_zero();
  float* out = floats.data<float>();
  for (int64_t k = 0; k < count; ++k) {
    out[k] = static_cast<float>(values.data[k] - zero) * in(i).scale;
  }
  return floats;
}

absl::Status QdqKernel::RunSteps(KernelContext* context) const {
  std::vector<Tensor> read;
  for (int i = 0; i < in_count(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(read.emplace_back(), InputOfSteps(i, context));
  }
  std::vector<Tensor> made(1);
  KernelContext inner =
      context->WithTensors(absl::MakeSpan(read), absl::MakeSpan(made));
  OPTFARM_RETURN_IF_ERROR(steps_.chain.Run(&inner));
  if (made[0].has_value() && made[0].dtype() != out_.dtype) {
    return absl::InternalError("the steps made a tensor of another type");
  }
  if (made[0].has_value() && out_.is_signed() && is_out_held_) {
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor * out, context->AllocateOutput(0, out_.dtype, made[0].shape()));
    FlipSigns(static_cast<const uint8_t*>(made[0].raw()),
              made[0].num_elements(), context->pool(),
              static_cast<uint8_t*>(out->raw()));
    return absl::OkStatus();
  }
  context->SetOutput(0, std::move(made[0]));
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
