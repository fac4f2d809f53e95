#include "engine/runtime/core/quantization.h"

namespace optfarm::runtime {
namespace {

// Truncates toward zero; what does not fit is cut at 2^60, which leaves room
// for the sums of (4).
int64_t TruncateToInt64(double value) {
  constexpr double kBound = 1152921504606846976.0;  // 2^60
  return static_cast<int64_t>(std::clamp(value, -kBound, kBound));
}

}  // namespace

Range WidenedForQuantize(Range range) {
  Range wide;
  wide.min = std::min(0.0f, range.min);
  const float epsilon =
      std::max({1.0f, std::abs(range.min), std::abs(range.max)}) / 100.0f;
  wide.max = std::max({range.max, wide.min + epsilon, 0.0f});
  return wide;
}

Requantizer::Requantizer(Range input, Range output) {
  const float input_range = input.max - input.min;
  const float output_range = output.max - output.min;
  const bool empty = output_range == 0.0f;
  const float values_per_unit =
      empty ? 0.0f : static_cast<float>(255.0 / output_range);
  const float middle = (input.min + input.max) / 2.0f;
  scale_ =
      empty ? 0 : TruncateToInt64(255.0 * 65536.0 * input_range / output_range);
  const int64_t b = TruncateToInt64(middle * values_per_unit * 65536.0f);
  const int64_t c =
      empty ? 0
            : TruncateToInt64(65536.0 * (output.min * 255.0) / output_range);
  offset_ = b - c + (1 << 15);
  const int64_t magnitude = std::max<int64_t>(std::abs(scale_), 1);
  bound_ = std::min<int64_t>((int64_t{1} << 62) / magnitude, int64_t{1} << 31);
}

}  // namespace optfarm::runtime
