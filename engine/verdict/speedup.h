// How much faster a variant is than the original, with an interval: from the
// runs of both, which an agent takes in turn, so that heat and other work hit
// both alike.

#ifndef OPTFARM_ENGINE_VERDICT_SPEEDUP_H_
#define OPTFARM_ENGINE_VERDICT_SPEEDUP_H_

#include <optional>

#include "optfarm/v1/measurement.pb.h"

namespace optfarm::verdict {

// UNITS: ratio, the original's latency over the variant's.
struct Speedup {
  // Of the medians of all runs.
  double ratio = 0;
  // Ends of the 95 % interval, which contains `ratio`.
  double low = 0;
  double high = 0;
};

// The runs of both are cut, in their order, into as many equal parts, at most
// ten; the interval is Student's over the logarithms of the parts' ratios of
// medians. With fewer than 20 runs of either it is that of the measurements'
// own intervals of the median. nullopt without a median; low and high are both
// 0 without an interval.
std::optional<Speedup> FindSpeedup(const v1::Measurement& original,
                                   const v1::Measurement& variant);

}  // namespace optfarm::verdict

#endif  // OPTFARM_ENGINE_VERDICT_SPEEDUP_H_
