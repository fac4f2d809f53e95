// Merging nodes that compute the same, for merge_duplicate_nodes and the passes
// that leave many equal nodes behind.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_DUPLICATE_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_DUPLICATE_NODES_H_

#include <cstdint>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Of nodes with the same op, device, attributes and inputs the first in file
// order stays and takes over the others' consumers, until no two are equal.
// Stateful nodes, placeholders, and the graph's inputs and outputs stay.
// Returns the number of nodes removed.
int64_t MergeDuplicates(const TransformContext& context, graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_DUPLICATE_NODES_H_
