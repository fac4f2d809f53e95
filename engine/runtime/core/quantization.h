// How quantized values stand for real numbers, as TensorFlow defines it. A
// tensor of them comes with the range [min, max] of real numbers that the
// lowest and highest of them stand for. With n bits, N = 2^n and lowest value
// L:
//   (1) scale  s = (max - min) / (N - 1)
//   (2) quantize   q = clamp(round(x / s) - round(min / s) + L)
//   (3) dequantize x = round(min / s) * s + (q - L) * s
// where round goes half away from zero. (2) and (3) give zero an exact
// quantized value, the zero point.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_QUANTIZATION_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_QUANTIZATION_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace optfarm::runtime {

// The real numbers that a tensor's lowest and highest quantized values stand
// for.
struct Range {
  float min = 0;
  float max = 0;
};

// Number of quantized values of an integer type, as a real number.
template <typename Q>
constexpr double QuantizedCount() {
  return static_cast<double>(std::numeric_limits<Q>::max()) -
         static_cast<double>(std::numeric_limits<Q>::lowest()) + 1.0;
}

// (max - min) * N / (N - 1), so that s = span / N. In this order of operations,
// as in TensorFlow: whether round(min / s) ends on a half depends on the last
// bit.
template <typename Q>
double AdjustedSpan(Range range) {
  const double adjust = QuantizedCount<Q>() / (QuantizedCount<Q>() - 1.0);
  return (range.max - range.min) * adjust;
}

// Equation (2) in double precision, without the clamp: the zero point may lie
// outside the type when the range excludes zero. The lowest value for an empty
// range. Results beyond 2^62 are cut there.
template <typename Q>
int64_t QuantizeUnclamped(float value, Range range) {
  constexpr int64_t kLowest = std::numeric_limits<Q>::lowest();
  if (range.min == range.max) return kLowest;
  const double per_unit = QuantizedCount<Q>() / AdjustedSpan<Q>(range);
  const double q =
      std::round(value * per_unit) - std::round(range.min * per_unit);
  constexpr double kBound = 4611686018427387904.0;  // 2^62
  if (!(q > -kBound)) return -(int64_t{1} << 62);
  if (!(q < kBound)) return int64_t{1} << 62;
  return static_cast<int64_t>(q) + kLowest;
}

// Equation (2). NaN gives the lowest quantized value.
template <typename Q>
Q Quantize(float value, Range range) {
  return static_cast<Q>(std::clamp<int64_t>(QuantizeUnclamped<Q>(value, range),
                                            std::numeric_limits<Q>::lowest(),
                                            std::numeric_limits<Q>::max()));
}

// Equation (3), prepared once for many quantized values. As in TensorFlow
// round(min / s) * s is computed in single precision, the rest in double: for
// 32-bit values that shifts all values by up to 128 s, which requantization
// ranges carry on; for 8-bit values the last bit decides the integer step of
// QuantizedAdd.
template <typename Q>
class Dequantizer {
 public:
  explicit Dequantizer(Range range) {
    if (range.min == range.max) {
      start_ = range.min;
      return;
    }
    scale_ = AdjustedSpan<Q>(range) / QuantizedCount<Q>();
    const float rounded_scale = static_cast<float>(scale_);
    start_ = std::round(range.min / rounded_scale) * rounded_scale;
  }
  float operator()(Q q) const {
    constexpr double kLowest = std::numeric_limits<Q>::lowest();
    // One rounding, as in TensorFlow's builds with FMA.
    return static_cast<float>(
        std::fma(static_cast<double>(q) - kLowest, scale_, start_));
  }

 private:
  double scale_ = 0;
  float start_ = 0;
};

// Range of a 32-bit product of quantized values of `A` and `B`
// (QuantizedConv2D, MatMul, Mul): one step of the product is the product of the
// two steps.
template <typename A, typename B>
Range RangeOfProduct(Range a, Range b) {
  const float step_a =
      (a.max - a.min) / static_cast<float>(QuantizedCount<A>() - 1.0);
  const float step_b =
      (b.max - b.min) / static_cast<float>(QuantizedCount<B>() - 1.0);
  const float step = step_a * step_b;
  return {step * -2147483648.0f, step * 2147483648.0f};
}

// Range of the 32-bit sum of QuantizedBiasAdd: the largest magnitude, with 17
// bits to spare.
inline Range RangeOfBiasSum(Range a, Range b) {
  const float largest = std::max(
      {std::abs(a.min), std::abs(a.max), std::abs(b.min), std::abs(b.max)});
  const float bound = largest * static_cast<float>(1 << 17);
  return {-bound, bound};
}

// Range of a 32-bit sum in QuantizedAdd. TensorFlow 1.4, which the reference
// results are from, takes the smaller of the two maxima; where that would leave
// no room for the larger, all four bounds count, as in later versions.
inline Range RangeOfSum(Range a, Range b) {
  constexpr float kSteps = 1 << 14;
  const float usual = std::max(std::abs(std::min(a.min, b.min)),
                               std::abs(std::min(a.max, b.max)));
  const float largest = std::max(
      {std::abs(a.min), std::abs(a.max), std::abs(b.min), std::abs(b.max)});
  const float bound = (largest < usual * kSteps / 4 ? usual : largest) * kSteps;
  return {-bound, bound};
}

// Widens a range so that it contains zero and is not empty, as QuantizeV2 does:
// min' = min(0, min), max' = max(max, min' + max(1, |min|, |max|) / 100, 0).
Range WidenedForQuantize(Range range);

// Requantizes accumulators to 8 bits in fixed point with 16 fractional bits:
//   (4) q = clamp((((v * a) >> 32) + b - c + 2^15) >> 16, 0, 255)
//       a = trunc(255 * 2^16 * input range / output range)
//       b = trunc((input min + input max) / 2 * 255 / output range * 2^16)
//       c = trunc(2^16 * output min * 255 / output range)
class Requantizer {
 public:
  Requantizer(Range input, Range output);
  uint8_t operator()(int32_t accumulator) const {
    // Accumulators beyond the bound would overflow and are clamped in the end
    // anyway.
    const int64_t v = std::clamp<int64_t>(accumulator, -bound_, bound_);
    const int64_t q = (((v * scale_) >> 32) + offset_) >> 16;
    return static_cast<uint8_t>(std::clamp<int64_t>(q, 0, 255));
  }

  // a, b - c + 2^15, and what accumulators are cut to before all that.
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }
  int64_t bound() const { return bound_; }

 private:
  int64_t scale_ = 0;
  int64_t offset_ = 0;
  int64_t bound_ = 0;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_QUANTIZATION_H_
