#include "engine/transforms/nodes/loop_nodes.h"

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

std::vector<bool> NodesInLoops(const Graph& graph) {
  std::vector<bool> in_loop(graph.id_limit(), false);
  std::vector<NodeId> stack;
  for (NodeId id : graph.Ids()) {
    if (graph::IsEnter(graph.node(id).op())) stack.push_back(id);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const graph::Use& use : graph.node(id).uses()) {
      if (in_loop[use.consumer] ||
          graph::IsExit(graph.node(use.consumer).op())) {
        continue;
      }
      in_loop[use.consumer] = true;
      stack.push_back(use.consumer);
    }
  }
  return in_loop;
}

NodeId ConstantOf(const Graph& graph, graph::Endpoint tensor) {
  // Deeper than loops are nested; a damaged graph may go in circles.
  constexpr int kMostEnters = 64;
  for (int i = 0; i < kMostEnters; ++i) {
    const graph::Node& node = graph.node(tensor.node);
    if (graph::IsConst(node.op())) {
      return tensor.port == 0 ? tensor.node : graph::kNoNode;
    }
    const bool is_fixed =
        graph::IsEnter(node.op()) &&
        graph::GetBoolOr(node.def(), "is_constant", false).value_or(false);
    if (!is_fixed || node.inputs().size() != 1) break;
    tensor = node.inputs()[0];
  }
  return graph::kNoNode;
}

}  // namespace optfarm::transforms
