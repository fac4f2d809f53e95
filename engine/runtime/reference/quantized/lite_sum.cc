#include "engine/runtime/reference/quantized/lite_sum.h"

#include <algorithm>
#include <cmath>

namespace optfarm::runtime {

LiteSumFactors FactorsOfLiteSum(float scale_a, float scale_b,
                                float result_scale) {
  const float a = scale_a / result_scale;
  const float b = scale_b / result_scale;
  const int bits = 20 - std::ilogb(std::max(a, b));
  const auto rounded = [bits](float ratio) {
    return std::ldexp(std::nearbyint(std::ldexp(ratio, bits)), -bits);
  };
  return {rounded(a), rounded(b)};
}

}  // namespace optfarm::runtime
