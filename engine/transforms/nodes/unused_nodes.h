// Cleaning up after a rewrite.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_UNUSED_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_UNUSED_NODES_H_

#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Removes those of `candidates` that nothing uses any more, and those that
// become unused by it. The graph's inputs and outputs stay. Numbers that are no
// nodes (any more) are passed over.
void RemoveUnused(std::vector<graph::NodeId> candidates,
                  const TransformContext& context, graph::Graph* graph);

// The same, and whatever below them is then not used any more. Returns the
// number of nodes removed.
int64_t RemoveUnusedWithInputs(std::vector<graph::NodeId> candidates,
                               const TransformContext& context,
                               graph::Graph* graph);

// Lets `replacement` wait for all that `node` waits for.
void InheritControlInputs(graph::NodeId replacement, graph::NodeId node,
                          graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_UNUSED_NODES_H_
