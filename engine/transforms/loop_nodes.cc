#include "engine/transforms/loop_nodes.h"

#include "absl/strings/match.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

std::vector<bool> NodesInLoops(const Graph& graph) {
  std::vector<bool> in_loop(graph.id_limit(), false);
  std::vector<NodeId> stack;
  for (NodeId id : graph.Ids()) {
    if (absl::EndsWith(graph.node(id).op(), "Enter")) stack.push_back(id);
  }
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    for (const graph::Use& use : graph.node(id).uses()) {
      if (in_loop[use.consumer] ||
          absl::EndsWith(graph.node(use.consumer).op(), "Exit")) {
        continue;
      }
      in_loop[use.consumer] = true;
      stack.push_back(use.consumer);
    }
  }
  return in_loop;
}

}  // namespace optfarm::transforms
