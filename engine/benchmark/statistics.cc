#include "engine/benchmark/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace optfarm::benchmark {

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
  for (double& value : sorted) value = std::abs(value - summary.median);
  std::sort(sorted.begin(), sorted.end());
  summary.mad = Quantile(sorted, 0.5);
  return summary;
}

}  // namespace optfarm::benchmark
