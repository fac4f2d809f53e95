#include "engine/formats/onnx/raising/sum_rounding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "engine/formats/onnx/lite_rounding.h"

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

// XNNPACK: the larger ratio has 21 bits, and halves go up.
class LiteSum {
 public:
  LiteSum(const SumTensor& a, const SumTensor& b, const SumTensor& result) {
    const float ratio_a = a.scale / result.scale;
    const float ratio_b = b.scale / result.scale;
    const int bits = 20 - std::ilogb(std::max(ratio_a, ratio_b));
    a_ = std::ldexp(std::nearbyint(std::ldexp(ratio_a, bits)), -bits);
    b_ = std::ldexp(std::nearbyint(std::ldexp(ratio_b, bits)), -bits);
    zero_ = result.zero_point - a.zero_point * a_ - b.zero_point * b_;
  }
  // In steps of the result, plus one half.
  double At(int a, int b) const { return zero_ + a * a_ + b * b_ + 0.5; }

 private:
  double a_ = 0, b_ = 0, zero_ = 0;
};

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
  const LiteSum lite(a, b, result);
  std::array<int, std::size(kMovesUp)> moved = {};
  int plain = 0, line = 0;
  for (int x = 0; x < kValues; ++x) {
    for (int y = 0; y < kValues; ++y) {
      const double value = lite.At(x, y);
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
