#include "engine/transforms/nodes/weight_ranges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace optfarm::transforms {

namespace {

// Values side by side in so many lanes, whatever the machine's registers hold:
// minima and maxima do not depend on the order, so the result is the same.
constexpr size_t kLanes = 16;

// All ones in the exponent: infinite or not a number.
constexpr uint32_t kExponent = 0x7f800000;

struct Lanes {
  std::array<float, kLanes> min;
  std::array<float, kLanes> max;
  std::array<uint32_t, kLanes> has_bad_value;

  void Add(const float* values) {
    for (size_t i = 0; i < kLanes; ++i) {
      min[i] = values[i] < min[i] ? values[i] : min[i];
      max[i] = values[i] > max[i] ? values[i] : max[i];
      const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
      has_bad_value[i] |= (bits & kExponent) == kExponent ? 1u : 0u;
    }
  }
};

}  // namespace

WeightRange FindWeightRange(absl::Span<const float> values) {
  Lanes lanes;
  lanes.min.fill(std::numeric_limits<float>::max());
  lanes.max.fill(std::numeric_limits<float>::min());
  lanes.has_bad_value.fill(0);
  size_t at = 0;
  for (; at + kLanes <= values.size(); at += kLanes) lanes.Add(&values[at]);
  if (at < values.size()) {
    std::array<float, kLanes> rest;
    rest.fill(values[at]);
    std::copy(values.begin() + at, values.end(), rest.begin());
    lanes.Add(rest.data());
  }
  WeightRange range;
  range.min = *std::min_element(lanes.min.begin(), lanes.min.end());
  range.max = *std::max_element(lanes.max.begin(), lanes.max.end());
  for (uint32_t bad : lanes.has_bad_value) range.has_bad_value |= bad != 0;
  return range;
}

}  // namespace optfarm::transforms
