#include "engine/transforms/weight_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace optfarm::transforms {

WeightRange FindWeightRange(absl::Span<const float> values) {
  WeightRange range;
  range.min = std::numeric_limits<float>::max();
  range.max = std::numeric_limits<float>::min();
  for (float value : values) {
    range.has_bad_value = range.has_bad_value || !std::isfinite(value);
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  }
  return range;
}

}  // namespace optfarm::transforms
