#include "engine/runtime/core/half.h"

#include <bit>
#include <cmath>

#include "base/status_macros.h"

namespace optfarm::runtime {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  const float magnitude = std::abs(value);
  // Half way above the largest finite half.
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  // Multiples of the smallest subnormal below the smallest normal.
  if (magnitude < std::ldexp(1.0f, -14)) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(
                                            std::ldexp(magnitude, 24))));
  }
  uint32_t normal = (bits & 0x7fffffff) - (uint32_t{112} << 23);
  normal += 0xfff + ((normal >> 13) & 1);
  return static_cast<uint16_t>(sign | (normal >> 13));
}

float BfloatToFloat(uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

uint16_t FloatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

absl::StatusOr<Tensor> HalfAsFloat(const Tensor& in) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(tensorflow::DT_FLOAT, in.shape()));
  const auto convert =
      in.dtype() == tensorflow::DT_HALF ? HalfToFloat : BfloatToFloat;
  const uint16_t* from = in.data<uint16_t>();
  float* to = out.data<float>();
  for (int64_t i = 0; i < in.num_elements(); ++i) to[i] = convert(from[i]);
  return out;
}

absl::StatusOr<Tensor> FloatAsHalf(const Tensor& in, DataType to) {
  OPTFARM_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(to, in.shape()));
  const auto convert = to == tensorflow::DT_HALF ? FloatToHalf : FloatToBfloat;
  const float* from = in.data<float>();
  uint16_t* codes = out.data<uint16_t>();
  for (int64_t i = 0; i < in.num_elements(); ++i) codes[i] = convert(from[i]);
  return out;
}

}  // namespace optfarm::runtime
