#include "engine/formats/onnx/raising/sum_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "engine/formats/onnx/lite_rounding.h"
#include "engine/runtime/reference/quantized/lite_sum.h"

namespace optfarm::formats {
namespace {

constexpr int kValues = 256;
// UNITS: steps. More than floats can be wrong by.
constexpr double kDoubt = 0.01;
// XNNPACK adds in another way beyond.
constexpr float kLeastRatio = 1.0f / 1024, kMostRatio = 256;

bool HasUsualRatio(const SumTensor& from, const SumTensor& to) {
  const float ratio = from.scale / to.scale;
  return ratio >= kLeastRatio && ratio < kMostRatio;
}

int32_t Clamped(double value) {
  return static_cast<int32_t>(std::clamp(value, 0.0, 255.0));
}

// DequantizeLinear, Add, QuantizeLinear in floats; `move` is added before the
// last.
int32_t FloatSum(const SumTensor& a, const SumTensor& b,
                 const SumTensor& result, float move, int x, int y) {
  const float sum = static_cast<float>(x - a.zero_point) * a.scale +
                    static_cast<float>(y - b.zero_point) * b.scale;
  const float moved = move == 0 ? sum : sum + move;
  return Clamped(std::nearbyint(moved / result.scale) +
                 static_cast<float>(result.zero_point));
}

// ONNX Runtime's QLinearAdd: one line in both values, in fused floats.
int32_t LineSum(const SumTensor& a, const SumTensor& b, const SumTensor& result,
                int x, int y) {
  const float ratio_a = a.scale / result.scale;
  const float ratio_b = b.scale / result.scale;
  const float zero = static_cast<float>(result.zero_point) -
                     (ratio_a * static_cast<float>(a.zero_point) +
                      ratio_b * static_cast<float>(b.zero_point));
  return Clamped(
      std::nearbyint(std::fma(static_cast<float>(y), ratio_b,
                              std::fma(static_cast<float>(x), ratio_a, zero))));
}

}  // namespace

float NearestMove(const SumTensor& a, const SumTensor& b,
                  const SumTensor& result) {
  if (!HasUsualRatio(a, result) || !HasUsualRatio(b, result)) return kNearHalf;
  const runtime::LiteSumFactors factors =
      runtime::FactorsOfLiteSum(a.scale, b.scale, result.scale);
  const double zero =
      result.zero_point - a.zero_point * factors.a - b.zero_point * factors.b;
  std::array<int, std::size(kMovesUp)> moved = {};
  int plain = 0, line = 0;
  for (int x = 0; x < kValues; ++x) {
    for (int y = 0; y < kValues; ++y) {
      // In steps of the result, and one half.
      const double value = zero + x * factors.a + y * factors.b + 0.5;
      // The others are told apart by all floats.
      if (std::abs(value - std::nearbyint(value)) > kDoubt) continue;
      const int32_t wanted = Clamped(std::floor(value));
      plain += FloatSum(a, b, result, 0, x, y) != wanted;
      line += LineSum(a, b, result, x, y) != wanted;
      for (size_t i = 0; i < moved.size(); ++i) {
        const float move = result.scale * kMovesUp[i];
        moved[i] += FloatSum(a, b, result, move, x, y) != wanted;
      }
    }
  }
  const auto least = std::min_element(moved.begin(), moved.end());
  return std::max(plain, line) <= *least ? 0 : kMovesUp[least - moved.begin()];
}

}  // namespace optfarm::formats
