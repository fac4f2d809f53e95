// Which nodes run inside of while loops.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_LOOP_NODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_LOOP_NODES_H_

#include <vector>

#include "engine/graph/graph.h"

namespace optfarm::transforms {

// By NodeId: what lies between Enter and Exit. A node without inputs runs
// outside, once; a constant that is added for a node inside has to wait for
// something inside.
std::vector<bool> NodesInLoops(const graph::Graph& graph);

// The Const whose value the tensor has, also where Enter nodes bring it into
// loops; kNoNode when there is none.
graph::NodeId ConstantOf(const graph::Graph& graph, graph::Endpoint tensor);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_LOOP_NODES_H_
