// Statistics of a series of run times. Pure functions.

#ifndef OPTFARM_ENGINE_BENCHMARK_STATISTICS_H_
#define OPTFARM_ENGINE_BENCHMARK_STATISTICS_H_

#include "absl/types/span.h"

namespace optfarm::benchmark {

// UNITS: those of the values.
struct Summary {
  double min = 0;
  double median = 0;
  double mean = 0;
  // Median absolute deviation from the median, not scaled.
  double mad = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};

// The value at `fraction` (0..1) of sorted values, between two of them in
// proportion (NumPy's linear method). 0 for no values.
double Quantile(absl::Span<const double> sorted, double fraction);

// All zero for no values.
Summary Summarize(absl::Span<const double> values);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_STATISTICS_H_
