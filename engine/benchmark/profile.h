// Sums traces of runs up by op and by node. Pure functions.

#ifndef OPTFARM_ENGINE_BENCHMARK_PROFILE_H_
#define OPTFARM_ENGINE_BENCHMARK_PROFILE_H_

#include "absl/types/span.h"
#include "engine/runtime/session/session.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// Fills op_times (largest total first) and slowest_nodes (at most 20), as means
// over the traces. No effect without traces.
void FillProfile(absl::Span<const runtime::RunTrace> traces,
                 v1::Measurement* measurement);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_PROFILE_H_
