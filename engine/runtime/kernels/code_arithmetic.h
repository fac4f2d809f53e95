// How the kernels on codes compute, beyond the equations in quantization.h:
// what TensorFlow does in single precision or through tables. Whatever computes
// the same faster (fast/int8_chain.h) takes its numbers from here.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_CODE_ARITHMETIC_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_CODE_ARITHMETIC_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/quantization.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// The attribute `mode` of QuantizeV2 and Dequantize.
enum class CodeMode { kMinCombined, kMinFirst, kScaled };
// ERRORS: InvalidArgument for any other value.
absl::StatusOr<CodeMode> CodeModeOf(const tensorflow::NodeDef& node);

template <typename Code>
constexpr float LowestCode() {
  return static_cast<float>(std::numeric_limits<Code>::lowest());
}

// The highest float that converts back without leaving the type.
template <typename Code>
constexpr float HighestCode() {
  return sizeof(Code) == 4
             ? 2147483520.0f
             : static_cast<float>(std::numeric_limits<Code>::max());
}

// QuantizeV2 with MIN_FIRST: round(x * per_unit) - start, single precision
// throughout, as in TensorFlow's vector path.
template <typename Code>
struct MinFirst {
  explicit MinFirst(Range range)
      : per_unit(range.min == range.max
                     ? 0.0f
                     : static_cast<float>((CodeCount<Code>() - 1.0) /
                                          (range.max - range.min))),
        start(std::round(range.min * per_unit) - LowestCode<Code>()) {}
  float per_unit;
  float start;
};

// Dequantize: x = offset + q * scale in single precision, for every mode.
struct Affine {
  float scale = 0;
  float offset = 0;
};

template <typename Code>
Affine AffineOf(CodeMode mode, Range range) {
  const double codes = CodeCount<Code>();
  if (mode == CodeMode::kMinFirst) {
    if (range.min == range.max) return {0.0f, range.min};
    const float scale =
        static_cast<float>((range.max - range.min) / (codes - 1.0));
    const float start = std::round(range.min / scale) * scale;
    return {scale, start - LowestCode<Code>() * scale};
  }
  if (mode == CodeMode::kMinCombined) {
    const float scale =
        static_cast<float>((range.max - range.min) / (codes - 1.0));
    const float half = std::numeric_limits<Code>::is_signed
                           ? static_cast<float>(codes / 2)
                           : 0;
    return {scale, half * scale + range.min};
  }
  const float from_max = range.max / HighestCode<Code>();
  const float from_min = std::numeric_limits<Code>::is_signed
                             ? range.min / LowestCode<Code>()
                             : 0.0f;
  return {std::max(from_min, from_max), 0.0f};
}

// What each of the 256 codes of an operand adds to a 32-bit sum.
using CodeTable = std::vector<int32_t>;

inline int32_t CutTo32Bits(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

// QuantizedAdd converts a scalar code by code, anything else along the line
// through the codes 0 and 1, whose step is rounded to an integer.
CodeTable TableForAdd(Range from, Range to, bool is_scalar);

// QuantizedBiasAdd converts in single precision. Near 2^31 floats are 128
// apart: the offset, and with it all codes, may be wrong by that, which the
// requantization range carries on.
CodeTable TableForBias(Range from, Range to);
// The same for the bias itself: TensorFlow adds the code of 0.0 too; the last
// bit decides if it is -1.
CodeTable TableOfBias(Range from, Range to);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_CODE_ARITHMETIC_H_
