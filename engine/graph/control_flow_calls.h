// If, Case and While as nodes: Switch and Merge, or a loop, around calls of
// their functions. A step of inlining (function_inlining.h), which then inlines
// those calls.

#ifndef OPTFARM_ENGINE_GRAPH_CONTROL_FLOW_CALLS_H_
#define OPTFARM_ENGINE_GRAPH_CONTROL_FLOW_CALLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// What stands for such a node.
struct ControlFlowNodes {
  // Its results and their types, in order.
  std::vector<tensorflow::DataType> types;
  std::vector<Endpoint> results;
  // Alive when a node without results has run; else kNoNode.
  NodeId done = kNoNode;
  // New nodes that call the functions, by StatefulPartitionedCall.
  std::vector<NodeId> calls;
};

// Whether the op is If, Case or While, stateless or not.
bool IsControlFlowCall(absl::string_view op);

// Adds the nodes beside `node`, which stays as it is.
// REQUIRES: IsControlFlowCall of its op.
// ERRORS: InvalidArgument for attributes that are no functions or do not fit
// its inputs; Unimplemented for a condition that is not bool.
absl::StatusOr<ControlFlowNodes> AddControlFlow(NodeId node, Graph* graph);

tensorflow::NodeDef MakeNodeDef(const std::string& name, const std::string& op);
// With attribute T.
tensorflow::NodeDef MakeNodeDef(const std::string& name, const std::string& op,
                                tensorflow::DataType type);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_CONTROL_FLOW_CALLS_H_
