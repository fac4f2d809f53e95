// One optimized graph on the way to a job's result: how it was made, what was
// learned from samples for it, and what was measured of it.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_ATTEMPT_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_ATTEMPT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/calibration/calibration.h"
#include "engine/optimize/judging/gates.h"
#include "engine/optimize/judging/keep_float.h"
#include "engine/transforms/folding/scale_channels.h"
#include "engine/transforms/folding/shift_constants.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Name of the file that the correction of biases reads, in the job's folder.
inline constexpr char kShiftFile[] = "bias_shifts.txt";

// Name of the file that adapted rounding is kept in, there too.
inline constexpr char kRoundingFile[] = "rounding_shifts.txt";

// Name of the file that the scaling of channels reads, there too.
inline constexpr char kFactorFile[] = "channel_factors.txt";

// One optimized graph with what was measured of it.
struct Attempt {
  Spared spared;
  graph::Graph graph;
  // All steps, freezing included.
  std::vector<transforms::TransformStep> steps;
  transforms::PipelineReport pipeline;
  // The graph before its file was made smaller, with the names and constants
  // that layers are known by, and how many steps had been run; nullopt when
  // `graph` is as readable.
  std::optional<graph::Graph> readable;
  size_t readable_steps = 0;
  int64_t readable_bytes = 0;
  // Empty logs when nothing was calibrated.
  Observation observed;
  // Empty when no weight was rounded anew.
  transforms::ConstantShifts rounding;
  // Empty when no bias was corrected.
  transforms::ConstantShifts shifts;
  // Empty when no channel was scaled.
  transforms::ChannelFactors factors;
  int64_t calibration_samples = 0;
  // What guided the search: on calibration samples, without labels. The gates
  // are the bounds and what the recipe aims at.
  GateFacts guide;
  std::vector<v1::GateResult> guide_gates;
  std::vector<v1::GateResult> aim_gates;
  // Why the graph cannot be run; no numbers then.
  absl::Status broken;
  // Whether the formats that the job asks for can hold it.
  bool can_be_written = true;
  // UNITS: milliseconds a sample on one thread.
  double milliseconds = 0;
  // Place among the chains tried.
  size_t search_step = 0;
  // What is reported: on other samples where there are any, with their labels.
  GateFacts facts;
  std::vector<v1::GateResult> gates;
  std::optional<v1::PairedAccuracy> paired;
  std::optional<v1::PairedAccuracy> paired_top5;
  std::vector<v1::SampleComparison> worst_samples;

  // The graph that layers are looked at in, and how its nodes were renamed.
  const graph::Graph& ReadableGraph() const {
    return readable.has_value() ? *readable : graph;
  }
  std::vector<transforms::RenamedNode> ReadableNames() const {
    const auto all = absl::MakeConstSpan(pipeline.steps);
    return transforms::MakeNameMap(
        readable.has_value() ? all.first(readable_steps) : all,
        ReadableGraph());
  }
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_ATTEMPT_H_
