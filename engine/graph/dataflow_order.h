// The order in which values come about: each node after everything it reads or
// waits for, with loops cut where they close. Unlike ExecutionOrder() of
// graph.h, which reproduces TensorFlow's sorting tool, a Merge that closes no
// loop stands after all of its inputs, and a cycle is told in full.

#ifndef OPTFARM_ENGINE_GRAPH_DATAFLOW_ORDER_H_
#define OPTFARM_ENGINE_GRAPH_DATAFLOW_ORDER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"

namespace optfarm::graph {

// Whether the edge from `source` into `consumer` closes a loop: it goes from
// NextIteration into Merge (or the same with references). Only such edges may
// be part of a cycle. REQUIRES: the edge exists.
bool IsLoopEdge(const Graph& graph, const Node& consumer, NodeId source);

// ERRORS: InvalidArgument naming the nodes of one cycle that is not a loop.
absl::StatusOr<std::vector<NodeId>> DataflowOrder(const Graph& graph);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_DATAFLOW_ORDER_H_
