// Kahn's algorithm without the edges that close loops; when nodes are left
// over, a walk against the edges that finds the cycle to name.

#include "engine/graph/dataflow_order.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

// A cycle longer than this is told with its beginning only.
constexpr size_t kMaxNamesShown = 8;

// An input of the node that has not come about; kNoNode when all have.
NodeId PendingInput(const Graph& graph, NodeId id,
                    const std::vector<int>& pending) {
  const Node& node = graph.node(id);
  for (const Endpoint& input : node.inputs()) {
    if (pending[input.node] > 0 && !IsLoopEdge(graph, node, input.node)) {
      return input.node;
    }
  }
  for (NodeId input : node.control_inputs()) {
    if (pending[input] > 0) return input;
  }
  return kNoNode;
}

// The cycle that holds up `start`, in the direction of the data.
absl::Status CycleError(const Graph& graph, NodeId start,
                        const std::vector<int>& pending) {
  // Walking against the edges among pending nodes must come back somewhere.
  std::vector<bool> seen(graph.id_limit(), false);
  NodeId at = start;
  while (!seen[at]) {
    seen[at] = true;
    at = PendingInput(graph, at, pending);
  }
  std::vector<NodeId> cycle = {at};
  for (NodeId id = PendingInput(graph, at, pending); id != at;
       id = PendingInput(graph, id, pending)) {
    cycle.push_back(id);
  }
  std::reverse(cycle.begin(), cycle.end());
  std::string names;
  for (size_t i = 0; i < std::min(cycle.size(), kMaxNamesShown); ++i) {
    absl::StrAppend(&names, "'", graph.node(cycle[i]).name(), "' -> ");
  }
  if (cycle.size() > kMaxNamesShown) absl::StrAppend(&names, "... -> ");
  return absl::InvalidArgumentError(
      absl::StrCat("the graph has a cycle that is not a loop: ", names, "'",
                   graph.node(cycle[0]).name(), "'"));
}

}  // namespace

bool IsLoopEdge(const Graph& graph, const Node& consumer, NodeId source) {
  return IsMerge(consumer.op()) && IsNextIteration(graph.node(source).op());
}

absl::StatusOr<std::vector<NodeId>> DataflowOrder(const Graph& graph) {
  const std::vector<NodeId> ids = graph.Ids();
  std::vector<int> pending(graph.id_limit(), 0);
  std::vector<NodeId> order;
  order.reserve(ids.size());
  for (NodeId id : ids) {
    const Node& node = graph.node(id);
    pending[id] = static_cast<int>(node.control_inputs().size());
    for (const Endpoint& input : node.inputs()) {
      pending[id] += IsLoopEdge(graph, node, input.node) ? 0 : 1;
    }
    if (pending[id] == 0) order.push_back(id);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const Use& use : graph.node(order[i]).uses()) {
      if (!use.is_control() &&
          IsLoopEdge(graph, graph.node(use.consumer), order[i])) {
        continue;
      }
      if (--pending[use.consumer] == 0) order.push_back(use.consumer);
    }
  }
  if (order.size() == ids.size()) return order;
  const auto stuck = std::find_if(ids.begin(), ids.end(),
                                  [&](NodeId id) { return pending[id] > 0; });
  return CycleError(graph, *stuck, pending);
}

}  // namespace optfarm::graph
