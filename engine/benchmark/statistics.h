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
  // Ends of the 95 % interval of the median, from the order of the values and
  // nothing assumed of their distribution; min and max for ten or fewer.
  double median_low = 0;
  double median_high = 0;
  // Values further than three scaled deviations (1.4826 times the MAD) from the
  // median. They count in everything above.
  int outliers = 0;
};

// The value at `fraction` (0..1) of sorted values, between two of them in
// proportion (NumPy's linear method). 0 for no values.
double Quantile(absl::Span<const double> sorted, double fraction);

// Half the width of the median's 95 % interval as a fraction of the median;
// 0 for a median of 0.
double MedianPrecision(const Summary& summary);

// All zero for no values.
Summary Summarize(absl::Span<const double> values);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_STATISTICS_H_
