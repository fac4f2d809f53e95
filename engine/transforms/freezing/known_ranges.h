// Ranges of quantized values that are the same in every run.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FREEZING_KNOWN_RANGES_H_
#define OPTFARM_ENGINE_TRANSFORMS_FREEZING_KNOWN_RANGES_H_

#include <optional>

#include "engine/graph/graph.h"
#include "engine/runtime/core/quantization.h"

namespace optfarm::transforms {

// Whether the node gives the range of the quantized values it reads, and no
// activation has cut them.
bool KeepsRange(const graph::Node& node);
// Which of its inputs is the minimum; the maximum follows.
// REQUIRES: KeepsRange(node).
int RangeInputOf(const graph::Node& node);

// The range that the two tensors hold, when it follows from constants: through
// layers that give 8-bit values, ops that keep ranges and products with
// constants. nullopt when it does not.
std::optional<runtime::Range> KnownRange(const graph::Graph& graph,
                                         graph::Endpoint min,
                                         graph::Endpoint max);

// Writes down what follows from known ranges: quantized values of constants,
// and the ends of scaled ranges. Returns how many nodes became constants.
int FoldKnownRanges(graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FREEZING_KNOWN_RANGES_H_
