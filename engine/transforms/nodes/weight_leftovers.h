// What is left of weights that no computation reads any more: their variable's
// initialization, and what training watched of them (their share of zeros,
// their histogram).

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_LEFTOVERS_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_LEFTOVERS_H_

#include <optional>
#include <string>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Removes `weights` with everything that is computed from them, and what only
// that needed. A merged summary loses one of its inputs; who waited for a
// removed node waits no longer. Returns why nothing was removed: an output of
// the graph is computed from them, or something is saved or changed with them.
std::optional<std::string> RemoveWeights(graph::NodeId weights,
                                         const TransformContext& context,
                                         graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_WEIGHT_LEFTOVERS_H_
