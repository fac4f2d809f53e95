#include "engine/transforms/quantizing/block_codes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/core/half.h"

namespace optfarm::transforms {
namespace {

using runtime::Shape;
using runtime::Tensor;

constexpr int kMostValue = 15;
// Shares of a block's ends that ranges go to.
constexpr float kShares[] = {1.0f, 0.95f, 0.9f, 0.85f, 0.8f, 0.75f, 0.7f};
// Scales of least squares, one after the other.
constexpr int kRefinements = 2;
constexpr float kMostHalf = 65504.0f;

struct BlockCode {
  // A 16-bit float.
  float scale = 0;
  int zero = runtime::kMiddleOfFourBits;
  double error = 0;
};

float RoundToHalf(float value) {
  return runtime::HalfToFloat(runtime::FloatToHalf(value));
}

float ValueOf(float real, float inverse, const BlockCode& code) {
  const float value =
      std::nearbyint(real * inverse) + static_cast<float>(code.zero);
  return std::clamp(value, 0.0f, static_cast<float>(kMostValue));
}

// The squared error of the block with this code.
double ErrorOf(absl::Span<const float> reals, const BlockCode& code) {
  const float inverse = 1.0f / code.scale;
  const auto zero = static_cast<float>(code.zero);
  double sum = 0;
  for (const float real : reals) {
    const double off =
        static_cast<double>(real) -
        static_cast<double>((ValueOf(real, inverse, code) - zero) * code.scale);
    sum += off * off;
  }
  return sum;
}

// Takes the other code where it is better.
void Try(absl::Span<const float> reals, float scale, int zero,
         BlockCode* best) {
  BlockCode code;
  code.scale = RoundToHalf(scale);
  code.zero = zero;
  if (!(code.scale > 0)) return;
  code.error = ErrorOf(reals, code);
  if (best->scale == 0 || code.error < best->error) *best = code;
}

// The scale that fits the values of a code best; 0 for none.
float LeastSquaresScale(absl::Span<const float> reals, const BlockCode& code) {
  const float inverse = 1.0f / code.scale;
  double products = 0, squares = 0;
  for (const float real : reals) {
    const double steps =
        ValueOf(real, inverse, code) - static_cast<float>(code.zero);
    products += static_cast<double>(real) * steps;
    squares += steps * steps;
  }
  return squares > 0 ? static_cast<float>(products / squares) : 0;
}

// REQUIRES: finite reals.
BlockCode ChooseCode(absl::Span<const float> reals) {
  const auto [least, most] = std::minmax_element(reals.begin(), reals.end());
  const float low = std::min(*least, 0.0f), high = std::max(*most, 0.0f);
  BlockCode best;
  for (const float low_share : kShares) {
    for (const float high_share : kShares) {
      const float from = low * low_share, to = high * high_share;
      const float scale = to / kMostValue - from / kMostValue;
      if (!(scale > 0)) continue;
      const auto zero = static_cast<int>(std::nearbyint(-from / scale));
      Try(reals, scale, std::clamp(zero, 0, kMostValue), &best);
      // Shares of nothing are nothing.
      if (high == 0) break;
    }
    if (low == 0) break;
  }
  for (int i = 0; i < kRefinements && best.scale > 0; ++i) {
    Try(reals, LeastSquaresScale(reals, best), best.zero, &best);
  }
  // All zero, or too small for a half: zeros of any scale.
  if (best.scale == 0) best.scale = 1;
  return best;
}

absl::Status CheckReals(absl::Span<const float> reals) {
  for (const float real : reals) {
    if (!std::isfinite(real)) {
      return absl::FailedPreconditionError("it holds NaN or infinite values");
    }
    if (std::abs(real) > kMostHalf) {
      return absl::FailedPreconditionError(
          absl::StrCat("it holds ", real, ", too large for scales of 16 bits"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BlockCodes> EncodeBlocks(absl::Span<const float> reals,
                                        const runtime::BlockGrid& grid) {
  OPTFARM_RETURN_IF_ERROR(CheckReals(reals));
  const auto bytes = [](int64_t values) {
    return Tensor::Zeros(tensorflow::DT_UINT8,
                         Shape({runtime::FourBitBytes(values)}));
  };
  BlockCodes codes;
  OPTFARM_ASSIGN_OR_RETURN(codes.values, bytes(grid.shape().num_elements()));
  OPTFARM_ASSIGN_OR_RETURN(codes.zero_points, bytes(grid.scale_count()));
  OPTFARM_ASSIGN_OR_RETURN(
      codes.scales, Tensor::Zeros(tensorflow::DT_HALF, grid.ScaleShape()));
  auto* const values = codes.values.data<uint8_t>();
  auto* const zeros = codes.zero_points.data<uint8_t>();
  auto* const scales = static_cast<uint16_t*>(codes.scales.raw());
  std::vector<float> block;
  for (int64_t o = 0; o < grid.outer(); ++o) {
    for (int64_t first = 0; first < grid.size(); first += grid.block()) {
      const int64_t end = std::min(grid.size(), first + grid.block());
      for (int64_t i = 0; i < grid.inner(); ++i) {
        block.clear();
        for (int64_t k = first; k < end; ++k) {
          block.push_back(reals[static_cast<size_t>(grid.ValueOf(o, k, i))]);
        }
        const BlockCode code = ChooseCode(block);
        const int64_t place = grid.ScaleOf(o, first, i);
        scales[place] = runtime::FloatToHalf(code.scale);
        runtime::SetFourBits(zeros, place, code.zero);
        for (int64_t k = first; k < end; ++k) {
          runtime::SetFourBits(
              values, grid.ValueOf(o, k, i),
              static_cast<int>(ValueOf(block[static_cast<size_t>(k - first)],
                                       1.0f / code.scale, code)));
        }
      }
    }
  }
  return codes;
}

}  // namespace optfarm::transforms
