// A picture of a tune on one device: latency against quality.

#ifndef OPTFARM_ENGINE_TUNE_PARETO_CHART_H_
#define OPTFARM_ENGINE_TUNE_PARETO_CHART_H_

#include <string>

#include "optfarm/v1/tune.pb.h"

namespace optfarm::tune {

// An SVG document: a point for each variant, its size by the file's, with the
// interval of its latency; dominated ones faint, the recommended one filled.
// The same bytes for the same numbers.
std::string DrawPareto(const v1::TunedDevice& device,
                       v1::TuneReport::Measure measure, double bound);

}  // namespace optfarm::tune

#endif  // OPTFARM_ENGINE_TUNE_PARETO_CHART_H_
