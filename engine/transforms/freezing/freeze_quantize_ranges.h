// Ranges of float tensors that are turned into 8-bit values: found in every run
// by a Min and a Max, or frozen to observed ones.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_QUANTIZE_RANGES_H_
#define OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_QUANTIZE_RANGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/transforms/freezing/freeze_ranges.h"
#include "engine/transforms/freezing/range_log.h"

namespace optfarm::transforms {

// QuantizeV2 nodes to quint8 whose range a Min and a Max node find in every
// run, outside of loops.
std::vector<graph::NodeId> QuantizesWithRangeOfRun(const graph::Graph& graph);

// Gives each such node of the log Consts `<node>/frozen_min` and
// `<node>/frozen_max` as its range. What computed it is left for
// strip_unused_nodes.
// ERRORS, before anything is changed: InvalidArgument for an empty log, a name
// that is no such node, a percentile out of range, an observation that is not
// finite.
absl::StatusOr<FreezeResult> FreezeQuantizeRanges(
    graph::Graph* graph, const RangeLog& log,
    const FreezeOptions& options = {});

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_QUANTIZE_RANGES_H_
