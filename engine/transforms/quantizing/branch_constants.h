// Constants that layers within branches of conditionals read.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BRANCH_CONSTANTS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BRANCH_CONSTANTS_H_

#include "engine/graph/graph.h"

namespace optfarm::transforms {

// A layer within a branch gets its weights and its bias through a Switch each.
// Where another of its inputs is cut off by a Switch of the same condition, it
// may as well read the constant itself: it runs in the same cases. Layers
// within loops are left alone. Returns how many inputs were changed; the Switch
// nodes are left for strip_unused_nodes.
int ReadConstantsDirectly(graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BRANCH_CONSTANTS_H_
