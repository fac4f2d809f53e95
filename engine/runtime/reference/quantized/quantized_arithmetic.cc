#include "engine/runtime/reference/quantized/quantized_arithmetic.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {

absl::StatusOr<QuantizeMode> QuantizeModeOf(const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(std::string mode,
                           graph::GetStringOr(node, "mode", "MIN_COMBINED"));
  if (mode == "MIN_COMBINED") return QuantizeMode::kMinCombined;
  if (mode == "MIN_FIRST") return QuantizeMode::kMinFirst;
  if (mode == "SCALED") return QuantizeMode::kScaled;
  return absl::InvalidArgumentError(
      absl::StrCat("attribute mode is '", mode,
                   "', expected MIN_COMBINED, MIN_FIRST or SCALED"));
}

AddendTable TableForAdd(Range from, Range to, bool is_scalar) {
  const Dequantizer<uint8_t> dequantize(from);
  const int64_t zero = QuantizeUnclamped<int32_t>(dequantize(0), to);
  const int64_t step = QuantizeUnclamped<int32_t>(dequantize(1), to) - zero;
  AddendTable table(256);
  for (int q = 0; q < 256; ++q) {
    table[q] = is_scalar
                   ? Quantize<int32_t>(dequantize(static_cast<uint8_t>(q)), to)
                   : CutTo32Bits(zero + q * step);
  }
  return table;
}

AddendTable TableForBias(Range from, Range to) {
  constexpr float kLowest = -2147483648.0f;
  // The highest float below 2^31.
  constexpr float kHighest = 2147483520.0f;
  const float scale = static_cast<float>((from.max - from.min) / 255.0);
  const float start =
      from.min == from.max ? from.min : std::round(from.min / scale) * scale;
  const float per_unit =
      to.min == to.max ? 0.0f
                       : static_cast<float>(4294967295.0 / (to.max - to.min));
  const float offset = std::round(to.min * per_unit) - kLowest;
  AddendTable table(256);
  for (int q = 0; q < 256; ++q) {
    const float value = std::fma(static_cast<float>(q), scale, start);
    const float exact = std::round(value * per_unit) - offset;
    table[q] =
        static_cast<int32_t>(std::min(std::max(kLowest, exact), kHighest));
  }
  return table;
}

AddendTable TableOfBias(Range from, Range to) {
  AddendTable table = TableForBias(from, to);
  const int32_t zero = Quantize<int32_t>(0.0f, to);
  for (int32_t& q : table) q = CutTo32Bits(int64_t{q} + zero);
  return table;
}

}  // namespace optfarm::runtime
