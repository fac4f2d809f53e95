// How the kernels on quantized values compute, beyond the equations in
// quantization.h: what TensorFlow does in single precision or through tables.
// Whatever computes the same faster (fusion/int8_chain.h) takes its numbers
// from here.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_ARITHMETIC_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_ARITHMETIC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/quantization.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// The attribute `mode` of QuantizeV2 and Dequantize.
enum class QuantizeMode { kMinCombined, kMinFirst, kScaled };
// ERRORS: InvalidArgument for any other value.
absl::StatusOr<QuantizeMode> QuantizeModeOf(const tensorflow::NodeDef& node);

template <typename Q>
constexpr float LowestQuantized() {
  return static_cast<float>(std::numeric_limits<Q>::lowest());
}

// The highest float that converts back without leaving the type.
template <typename Q>
constexpr float HighestQuantized() {
  return sizeof(Q) == 4 ? 2147483520.0f
                        : static_cast<float>(std::numeric_limits<Q>::max());
}

// QuantizeV2 with MIN_FIRST: round(x * per_unit) - start, single precision
// throughout, as in TensorFlow's vector path.
template <typename Q>
struct MinFirst {
  explicit MinFirst(Range range)
      : per_unit(range.min == range.max
                     ? 0.0f
                     : static_cast<float>((QuantizedCount<Q>() - 1.0) /
                                          (range.max - range.min))),
        start(std::round(range.min * per_unit) - LowestQuantized<Q>()) {}
  float per_unit;
  float start;
};

// Dequantize: x = offset + q * scale in single precision, for every mode.
struct Affine {
  float scale = 0;
  float offset = 0;
};

template <typename Q>
Affine AffineOf(QuantizeMode mode, Range range) {
  const double count = QuantizedCount<Q>();
  if (mode == QuantizeMode::kMinFirst) {
    if (range.min == range.max) return {0.0f, range.min};
    const float scale =
        static_cast<float>((range.max - range.min) / (count - 1.0));
    const float start = std::round(range.min / scale) * scale;
    return {scale, start - LowestQuantized<Q>() * scale};
  }
  if (mode == QuantizeMode::kMinCombined) {
    const float scale =
        static_cast<float>((range.max - range.min) / (count - 1.0));
    const float half =
        std::numeric_limits<Q>::is_signed ? static_cast<float>(count / 2) : 0;
    return {scale, half * scale + range.min};
  }
  const float from_max = range.max / HighestQuantized<Q>();
  const float from_min = std::numeric_limits<Q>::is_signed
                             ? range.min / LowestQuantized<Q>()
                             : 0.0f;
  return {std::max(from_min, from_max), 0.0f};
}

// What each of the 256 quantized values of an operand adds to a 32-bit sum.
using AddendTable = std::vector<int32_t>;

inline int32_t CutTo32Bits(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

// QuantizedAdd converts a scalar value by value, anything else along the line
// through the quantized values 0 and 1, whose step is rounded to an integer.
AddendTable TableForAdd(Range from, Range to, bool is_scalar);

// QuantizedBiasAdd converts in single precision. Near 2^31 floats are 128
// apart: the offset, and with it all values, may be wrong by that, which the
// requantization range carries on.
AddendTable TableForBias(Range from, Range to);
// The same for the bias itself: TensorFlow adds the zero point too; the last
// bit decides if it is -1.
AddendTable TableOfBias(Range from, Range to);

// --- Whole layers (QuantizedConv2DWithBias... and their like) ----------------

// Formula 10 of docs/quantization.md: the range of accumulators of this scale.
inline Range RangeOfScale(float scale) {
  return {scale * -2147483648.0f, scale * 2147483648.0f};
}

// Formula 5: the zero point must be in range.
inline Range WithZero(Range range) {
  return {std::min(range.min, 0.0f), std::max(range.max, 0.0f)};
}

// Half of the 32 bits at most, so that adding a bias stays within them.
inline int32_t CutBias(int32_t bias) {
  return std::clamp(bias, -(1 << 30), 1 << 30);
}

// Formula 26: the bias in the scale of its channel's accumulators.
inline int32_t QuantizeBias(float bias, float scale) {
  constexpr float kMost = 1 << 30;
  if (scale == 0.0f || std::isnan(bias)) return 0;
  return static_cast<int32_t>(
      std::nearbyint(std::clamp(bias / scale, -kMost, kMost)));
}

// Formula 27: what requantizes accumulators of this scale to a range.
inline float RequantizeFactor(float scale, Range to) {
  const double result_scale = (double{to.max} - to.min) / 255.0;
  return result_scale > 0 ? static_cast<float>(double{scale} / result_scale)
                          : 0.0f;
}

// Formula 9: whether no sum of `depth` products leaves 32 bits, with half of
// them left to the bias.
inline bool SumsFit(int64_t depth, int32_t input_zero, int32_t weights_zero) {
  const int64_t input =
      std::max<int64_t>(std::abs(input_zero), 255 - input_zero);
  const int64_t weight =
      std::max<int64_t>(std::abs(weights_zero), 255 - weights_zero);
  return depth <= (int64_t{1} << 30) / (input * weight);
}
// The same where the magnitudes of a channel's weights add up to `weight` at
// most.
inline bool SumsFit(int64_t weight, int32_t input_zero) {
  return weight <=
         (int64_t{1} << 30) / std::max(std::abs(input_zero), 255 - input_zero);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_ARITHMETIC_H_
