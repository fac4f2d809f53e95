// Observes the ranges of a quantized graph on samples, and makes of many
// observations the ones that are frozen.

#ifndef OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/sample_reader.h"
#include "engine/transforms/range_log.h"
#include "engine/transforms/transform_string.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// True when the graph has ranges to observe (RequantizationRange nodes).
bool HasRanges(const graph::Graph& graph);

struct Observation {
  transforms::RangeLog log;
  // Samples that were run.
  int64_t samples = 0;
};

// Runs the samples through a copy of the graph that insert_logging prepared.
// Up to `threads` samples run at once; the log does not depend on how many.
// ERRORS: those of transforming and running the graph; InvalidArgument for too
// many samples that cannot be used.
absl::StatusOr<Observation> ObserveRanges(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader);

// The log as it is frozen and kept: what was observed, or for MOVING_AVERAGE
// one averaged record a node.
transforms::RangeLog LogToFreeze(const v1::Calibration& calibration,
                                 const transforms::RangeLog& observed);

// The step that freezes a log file as the recipe says.
transforms::TransformStep FreezeStep(const v1::Calibration& calibration,
                                     absl::string_view log_file);

// The range a node gets, for the report.
transforms::ObservedRange FrozenRange(
    const v1::Calibration& calibration,
    absl::Span<const transforms::ObservedRange> records);

// "smallest and largest value of 100 samples, seed 1".
std::string DescribeMethod(const v1::Calibration& calibration, int64_t samples);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_H_
