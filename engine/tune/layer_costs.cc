#include "engine/tune/layer_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace optfarm::tune {
namespace {

// The layer that a node of an 8-bit graph computes or prepares: the node's
// name up to what the transform added; the name itself for others.
std::string LayerOfNode(absl::string_view name) {
  const size_t at = std::min(name.find("/eightbit"), name.find("_eightbit"));
  return std::string(absl::StripSuffix(name.substr(0, at), "/normalized"));
}

struct UnitTime {
  double us = 0;
  double output_bytes = 0;
  bool is_known = false;
};

// By unit. A step of several units is shared out evenly. Steps that convert
// alone belong to the places between units.
std::vector<UnitTime> TimesOf(const LayerSpace& space,
                              const v1::Measurement& measurement) {
  std::map<std::string, int> unit_of;
  for (size_t unit = 0; unit < space.units().size(); ++unit) {
    for (const std::string& layer : space.units()[unit].layers) {
      unit_of[layer] = static_cast<int>(unit);
    }
  }
  std::vector<UnitTime> times(space.units().size());
  for (const v1::StepTime& step : measurement.steps()) {
    if (ConvertsPrecision(step.work().op())) continue;
    std::set<int> units;
    for (const std::string& node : step.work().nodes()) {
      const auto found = unit_of.find(LayerOfNode(node));
      if (found != unit_of.end()) units.insert(found->second);
    }
    for (const int unit : units) {
      UnitTime& time = times[static_cast<size_t>(unit)];
      time.us += step.median_us() / static_cast<double>(units.size());
      time.output_bytes = static_cast<double>(step.work().output_bytes());
      time.is_known = true;
    }
  }
  return times;
}

}  // namespace

LayerCosts::LayerCosts(const LayerSpace& space, const v1::Measurement& in_float,
                       const v1::Measurement& in_8_bits,
                       const LatencyTable& table) {
  const std::vector<UnitTime> floats = TimesOf(space, in_float);
  const std::vector<UnitTime> bytes = TimesOf(space, in_8_bits);
  const size_t count = floats.size();
  size_t known = 0;
  std::vector<double> costs, conversions;
  double before = count == 0 ? 0 : floats[0].output_bytes;
  for (size_t i = 0; i < count; ++i) {
    const bool is_known = floats[i].is_known && bytes[i].is_known;
    known += is_known;
    costs.push_back(is_known ? floats[i].us - bytes[i].us : 0);
    conversions.push_back(table.Conversion(before));
    before = floats[i].output_bytes;
  }
  if (2 * known < count || count == 0) return;
  conversions.push_back(table.Conversion(before));
  in_float_us_ = std::move(costs);
  conversion_us_ = std::move(conversions);
}

double LayerCosts::Sum(const Subset& in_float) const {
  const std::set<int> chosen(in_float.begin(), in_float.end());
  const auto count = static_cast<int>(in_float_us_.size());
  // In everything quantized, precision changes at both ends.
  double sum = -conversion_us_.front() - conversion_us_.back();
  bool was_float = true;
  for (int i = 0; i <= count; ++i) {
    const bool is_float = i == count || chosen.contains(i);
    if (is_float != was_float) sum += conversion_us_[static_cast<size_t>(i)];
    if (i < count && is_float) sum += in_float_us_[static_cast<size_t>(i)];
    was_float = is_float;
  }
  return sum;
}

double LayerCosts::Magnitude() const {
  double sum = 0;
  for (const double us : in_float_us_) sum += std::abs(us);
  return sum;
}

}  // namespace optfarm::tune
