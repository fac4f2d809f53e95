#include "engine/transforms/nodes/unused_nodes.h"

#include "absl/container/flat_hash_set.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

void RemoveUnused(std::vector<NodeId> candidates,
                  const TransformContext& context, Graph* graph) {
  const absl::flat_hash_set<NodeId> all(candidates.begin(), candidates.end());
  // A node that goes may have been the last user of another candidate.
  while (!candidates.empty()) {
    const NodeId id = candidates.back();
    candidates.pop_back();
    if (!graph->Has(id) || !graph->node(id).uses().empty() ||
        context.IsInputOrOutput(graph->node(id).name())) {
      continue;
    }
    for (const graph::Endpoint& input : graph->node(id).inputs()) {
      if (all.contains(input.node)) candidates.push_back(input.node);
    }
    for (NodeId control : graph->node(id).control_inputs()) {
      if (all.contains(control)) candidates.push_back(control);
    }
    graph->Remove(id);
  }
}

int64_t RemoveUnusedWithInputs(std::vector<NodeId> candidates,
                               const TransformContext& context, Graph* graph) {
  int64_t removed = 0;
  while (!candidates.empty()) {
    const NodeId id = candidates.back();
    candidates.pop_back();
    if (!graph->Has(id) || !graph->node(id).uses().empty() ||
        context.IsInputOrOutput(graph->node(id).name())) {
      continue;
    }
    for (const graph::Endpoint& e : graph->node(id).inputs()) {
      candidates.push_back(e.node);
    }
    for (NodeId c : graph->node(id).control_inputs()) candidates.push_back(c);
    graph->Remove(id);
    ++removed;
  }
  return removed;
}

void InheritControlInputs(NodeId replacement, NodeId node, Graph* graph) {
  const std::vector<NodeId> controls(graph->node(node).control_inputs().begin(),
                                     graph->node(node).control_inputs().end());
  for (NodeId control : controls) graph->AddControlInput(replacement, control);
}

}  // namespace optfarm::transforms
