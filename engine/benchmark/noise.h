// Whether a measurement should be trusted. Pure functions.

#ifndef OPTFARM_ENGINE_BENCHMARK_NOISE_H_
#define OPTFARM_ENGINE_BENCHMARK_NOISE_H_

#include <string>
#include <vector>

#include "engine/benchmark/statistics.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// One sentence for each reason to doubt a measurement; empty: none is known.
//   - the spread (MAD) is above 5 % of the median
//   - the slowest tenth takes over 1.5 times the median
//   - the mean frequency fell by over 10 % from before to after
//   - it became 10 or more degrees hotter and is above 75 degrees
//   - other processes wanted more cores than the run leaves free
//   - the platform throttled
std::vector<std::string> NoiseReasons(const Summary& times, int threads,
                                      const v1::Environment& before,
                                      const v1::Environment& after);

// The sentence for a median that is less sure than asked for.
std::string MissedPrecision(const Summary& times, double precision);

// Marks a measurement noisy for one more reason.
void AddNoiseReason(std::string reason, v1::Measurement* measurement);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_NOISE_H_
