// Observes the ranges of a quantized graph on samples, and makes of many
// observations the ones that are frozen.

#ifndef OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_CALIBRATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_CALIBRATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/layers/value_observation.h"
#include "engine/transforms/freezing/range_log.h"
#include "engine/transforms/machinery/transform_string.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// True when the graph has ranges to observe (RequantizationRange nodes, and
// with `freeze_inputs` what is turned into quantized values).
bool HasRanges(const graph::Graph& graph, const v1::Calibration& calibration);

// What was observed, as it is frozen and kept. Methods other than the
// percentile have one record a node.
struct Observation {
  // By RequantizationRange nodes.
  transforms::RangeLog log;
  // By QuantizeV2 nodes; empty without `freeze_inputs`.
  transforms::RangeLog input_log;
  // Samples that were run.
  int64_t samples = 0;
};

// How many of a chain's first steps make a graph that still computes in float,
// which the next step quantizes; 0 when no step of the chain does.
size_t StepsBeforeQuantizing(absl::Span<const transforms::TransformStep> steps);

// How many of them come before any number is changed: before weights are
// quantized or their channels normalized, too. All when nothing is.
size_t FloatSteps(absl::Span<const transforms::TransformStep> steps);

// The graphs that ranges are observed in. OWNERSHIP: the caller's.
struct RangeGraphs {
  // Whose ranges are wanted.
  const graph::Graph* quantized = nullptr;
  // What StepsBeforeQuantizing made; may be nullptr. Where it has the float
  // tensor that a range is for, its values are observed: fast kernels compute
  // them at the cost of a plain run. All other ranges are observed in the
  // quantized graph, which computes one op at a time until its ranges are
  // known.
  const graph::Graph* floats = nullptr;
};

// Runs the samples and takes ranges as the recipe says.
// ERRORS: those of transforming and running the graphs; InvalidArgument for too
// many samples that cannot be used.
absl::StatusOr<Observation> ObserveRanges(
    const v1::Calibration& calibration, const RangeGraphs& graphs,
    absl::Span<const graph::TensorName> outputs, const SampleRun& run);

// Names of the files that the freezing steps read, in the job's folder.
inline constexpr char kRangeLogFile[] = "calibration.log";
inline constexpr char kInputLogFile[] = "input_ranges.log";

// The steps that freeze what was observed, its logs being in those files, and
// sort the graph afterwards. Empty when nothing was observed.
std::vector<transforms::TransformStep> FreezeSteps(
    const v1::Calibration& calibration, const Observation& observed);

// Freezes the ranges of those nodes that the graph has, a variant of the one
// that was observed.
// ERRORS: those of freezing.
absl::Status FreezeKnown(const v1::Calibration& calibration,
                         const Observation& observed, graph::Graph* graph);

// The range a node gets, for the report.
transforms::ObservedRange FrozenRange(
    const v1::Calibration& calibration,
    absl::Span<const transforms::ObservedRange> records);

// "smallest and largest value of 100 samples, seed 1".
std::string DescribeMethod(const v1::Calibration& calibration, int64_t samples);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_CALIBRATION_CALIBRATION_H_
