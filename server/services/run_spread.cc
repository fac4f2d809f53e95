#include "server/services/run_spread.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace optfarm::server {
namespace {

constexpr int kLeastPairs = 5;
// The median of a normal distribution's absolute values, and of a difference
// of two of them.
constexpr double kMedianOfDifference = 0.6745 * 1.4142135623730951;

bool IsOf(const storage::SeriesKey& series,
          const storage::MeasurementRecord& record) {
  return series.model_name == record.source_model.name() &&
         series.recipe_name == record.recipe_name &&
         series.variant == record.measurement.variant();
}

RunSpread SpreadOf(std::vector<double> differences) {
  if (differences.size() < kLeastPairs) return {};
  const auto middle =
      differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return {*middle / kMedianOfDifference, static_cast<int>(differences.size())};
}

}  // namespace

void RunSpreads::Add(const storage::SeriesKey& series,
                     absl::Span<const storage::PointNumbers> points) {
  History history{series, {}};
  for (size_t i = 1; i < points.size(); ++i) {
    const double newer = points[i - 1].median_us, older = points[i].median_us;
    if (newer <= 0 || older <= 0) continue;
    history.differences.push_back(std::abs(std::log(newer / older)));
  }
  if (history.differences.empty()) return;
  by_device_[series.device].push_back(std::move(history));
}

RunSpread RunSpreads::Of(const storage::MeasurementRecord& a,
                         const storage::MeasurementRecord& b) const {
  const auto device = by_device_.find(a.measurement.device());
  if (device == by_device_.end()) return {};
  std::vector<double> own, all;
  for (const History& history : device->second) {
    if (history.series.threads != a.measurement.threads()) continue;
    const auto& from = history.differences;
    all.insert(all.end(), from.begin(), from.end());
    if (IsOf(history.series, a) || IsOf(history.series, b)) {
      own.insert(own.end(), from.begin(), from.end());
    }
  }
  const RunSpread spread = SpreadOf(std::move(own));
  return spread.pairs > 0 ? spread : SpreadOf(std::move(all));
}

}  // namespace optfarm::server
