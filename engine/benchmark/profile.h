// Sums traces of runs up by op, by node and by step. Pure functions.

#ifndef OPTFARM_ENGINE_BENCHMARK_PROFILE_H_
#define OPTFARM_ENGINE_BENCHMARK_PROFILE_H_

#include "absl/types/span.h"
#include "engine/runtime/session/session.h"
#include "engine/runtime/session/step_work.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// Fills op_times (largest total first) and slowest_nodes (at most 20), as means
// over the traces. No effect without traces.
void FillProfile(absl::Span<const runtime::RunTrace> traces,
                 v1::Measurement* measurement);

// Fills steps with medians over the traces; those of another length than the
// first, as loops may leave them, are passed over. No effect without traces.
void FillSteps(absl::Span<const runtime::RunTrace> traces,
               const runtime::StepWorks& works, v1::Measurement* measurement);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_PROFILE_H_
