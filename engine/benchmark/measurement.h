// What every way of measuring writes into a Measurement.

#ifndef OPTFARM_ENGINE_BENCHMARK_MEASUREMENT_H_
#define OPTFARM_ENGINE_BENCHMARK_MEASUREMENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// Size and digest of the graph's file.
// ERRORS: those of reading it.
absl::Status FillModelFile(const std::string& path,
                           v1::Measurement* measurement);

// The timed runs: statistics, samples, conditions, reasons to doubt them.
// UNITS: microseconds. REQUIRES: measurement->threads() is set.
void FillTimes(absl::Span<const double> micros, absl::Time taken_at,
               const v1::Environment& before, const v1::Environment& after,
               v1::Measurement* measurement);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_MEASUREMENT_H_
