#include "engine/runtime/core/half.h"

#include <Eigen/Core>

#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

using Eigen::bfloat16;
using Eigen::half;
using Eigen::numext::bit_cast;

template <typename Narrow>
float Widen(uint16_t bits) {
  return static_cast<float>(bit_cast<Narrow>(bits));
}

template <typename Narrow>
uint16_t Round(float value) {
  return bit_cast<uint16_t>(Narrow(value));
}

template <typename Narrow>
void WidenAll(const uint16_t* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = Widen<Narrow>(in[i]);
}

template <typename Narrow>
void RoundAll(const float* in, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = Round<Narrow>(in[i]);
}

}  // namespace

float HalfToFloat(uint16_t bits) { return Widen<half>(bits); }
uint16_t FloatToHalf(float value) { return Round<half>(value); }
float BfloatToFloat(uint16_t bits) { return Widen<bfloat16>(bits); }
uint16_t FloatToBfloat(float value) { return Round<bfloat16>(value); }

absl::StatusOr<Tensor> HalfAsFloat(const Tensor& in) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(tensorflow::DT_FLOAT, in.shape()));
  const auto widen =
      in.dtype() == tensorflow::DT_HALF ? WidenAll<half> : WidenAll<bfloat16>;
  widen(in.data<uint16_t>(), in.num_elements(), out.data<float>());
  return out;
}

absl::StatusOr<Tensor> FloatAsHalf(const Tensor& in, DataType to) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(to, in.shape()));
  const auto round =
      to == tensorflow::DT_HALF ? RoundAll<half> : RoundAll<bfloat16>;
  round(in.data<float>(), in.num_elements(), out.data<uint16_t>());
  return out;
}

}  // namespace optfarm::runtime
