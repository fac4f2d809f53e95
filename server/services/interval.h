// How sure a number is: intervals of medians' ratios and of means. Pure
// functions.

#ifndef OPTFARM_SERVER_SERVICES_INTERVAL_H_
#define OPTFARM_SERVER_SERVICES_INTERVAL_H_

#include "absl/types/span.h"
#include "optfarm/v1/measurement.pb.h"
#include "server/services/run_spread.h"

namespace optfarm::server {

// A value and the ends of its 95 % interval; the ends are 0 when not known.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The median of `a` over that of `b`. The intervals of both medians count;
// where a measurement has none, its MAD and number of runs stand in for it, as
// for normally distributed times. `spread` is how much either median varies
// from one measurement to the next; it counts once for each side.
// REQUIRES: both medians are above 0.
Interval MedianRatio(const v1::Measurement& a, const v1::Measurement& b,
                     const RunSpread& spread);

// The geometric mean of ratios, with Student's interval of their logarithms.
// All 0 for no ratios, the ends 0 for one. REQUIRES: all are above 0.
Interval GeometricMean(absl::Span<const double> ratios);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_INTERVAL_H_
