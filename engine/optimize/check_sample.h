// One sample's inputs and outputs, written for devices to compare their own
// answers with.

#ifndef OPTFARM_ENGINE_OPTIMIZE_CHECK_SAMPLE_H_
#define OPTFARM_ENGINE_OPTIMIZE_CHECK_SAMPLE_H_

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/optimize/judging/optimizer_input.h"

namespace optfarm::optimize {

inline constexpr char kFloatGraphFile[] = "float.pb";
inline constexpr char kFloatCheckFile[] = "check_float.pb";
inline constexpr char kOptimizedCheckFile[] = "check_optimized.pb";

// Runs the first sample that can be used through the original and through
// `optimized`, and writes an optfarm.v1.CheckSample of each into the job's
// out_folder. Writes nothing when no sample can be used or when one would be
// larger than 64 MiB.
// ERRORS: those of running the graphs and of writing.
absl::Status WriteCheckSamples(const OptimizerInput& job,
                               const graph::Graph& optimized);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_CHECK_SAMPLE_H_
