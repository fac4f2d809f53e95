#include "engine/benchmark/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace optfarm::benchmark {
namespace {

constexpr double kNormal95 = 1.96;
// A normal distribution's standard deviation over its MAD.
constexpr double kDeviationOverMad = 1.4826;
// UNITS: standard deviations.
constexpr double kOutlier = 3;

// How many of n values are below the true median is binomially distributed,
// nearly normal with mean n/2 and deviation sqrt(n)/2.
void FillMedianInterval(absl::Span<const double> sorted, Summary* summary) {
  const auto count = static_cast<double>(sorted.size());
  const double reach = kNormal95 * std::sqrt(count) / 2;
  const double low = std::floor(count / 2 - reach);
  const double high = std::ceil(count / 2 + reach);
  summary->median_low =
      sorted[static_cast<size_t>(std::clamp(low - 1, 0.0, count - 1))];
  summary->median_high =
      sorted[static_cast<size_t>(std::clamp(high, 0.0, count - 1))];
}

}  // namespace

double Quantile(absl::Span<const double> sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * share;
}

Summary Summarize(absl::Span<const double> values) {
  Summary summary;
  if (values.empty()) return summary;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.median = Quantile(sorted, 0.5);
  summary.p90 = Quantile(sorted, 0.9);
  summary.p99 = Quantile(sorted, 0.99);
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) /
                 static_cast<double>(sorted.size());
  FillMedianInterval(sorted, &summary);
  for (double& value : sorted) value = std::abs(value - summary.median);
  std::sort(sorted.begin(), sorted.end());
  summary.mad = Quantile(sorted, 0.5);
  const double bound = kOutlier * kDeviationOverMad * summary.mad;
  summary.outliers = static_cast<int>(
      sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), bound));
  return summary;
}

double MedianPrecision(const Summary& summary) {
  if (!(summary.median > 0)) return 0;
  return (summary.median_high - summary.median_low) / (2 * summary.median);
}

}  // namespace optfarm::benchmark
