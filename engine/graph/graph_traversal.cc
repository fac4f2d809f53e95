// Going through a graph along its edges: ExecutionOrder and ReachableFrom of
// graph.h.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

bool TakesOneOfItsInputs(const Node& node) {
  return IsMerge(node.op()) || node.op() == "_XlaMerge";
}

}  // namespace

absl::StatusOr<std::vector<NodeId>> ExecutionOrder(const Graph& graph) {
  const std::vector<NodeId> ids = graph.Ids();
  std::vector<int> position(graph.id_limit(), 0);
  std::vector<int> pending(graph.id_limit(), 0);
  std::vector<NodeId> ready;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Node& node = graph.node(ids[i]);
    position[ids[i]] = static_cast<int>(i);
    const int controls = static_cast<int>(node.control_inputs().size());
    const int data = static_cast<int>(node.inputs().size());
    pending[ids[i]] =
        TakesOneOfItsInputs(node) && data > 0 ? controls + 1 : controls + data;
    if (data + controls == 0) ready.push_back(ids[i]);
  }
  std::vector<NodeId> order;
  order.reserve(ids.size());
  std::vector<NodeId> consumers;
  while (!ready.empty()) {
    const NodeId id = ready.back();
    ready.pop_back();
    order.push_back(id);
    consumers.clear();
    for (const Use& use : graph.node(id).uses()) {
      consumers.push_back(use.consumer);
    }
    std::sort(consumers.begin(), consumers.end(),
              [&](NodeId a, NodeId b) { return position[a] < position[b]; });
    for (NodeId consumer : consumers) {
      if (--pending[consumer] == 0) ready.push_back(consumer);
    }
  }
  if (order.size() == ids.size()) return order;
  std::vector<std::string> stuck;
  for (NodeId id : ids) {
    if (pending[id] > 0 && stuck.size() < 5) {
      stuck.push_back(graph.node(id).name());
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ids.size() - order.size(), " nodes in a cycle: '",
                   absl::StrJoin(stuck, "', '"), "'",
                   ids.size() - order.size() > stuck.size() ? ", ..." : ""));
}

std::vector<bool> ReachableFrom(const Graph& graph,
                                absl::Span<const NodeId> roots,
                                absl::Span<const NodeId> stop_at) {
  std::vector<bool> stop(graph.id_limit(), false);
  for (NodeId id : stop_at) stop[id] = true;
  std::vector<bool> seen(graph.id_limit(), false);
  std::vector<NodeId> stack(roots.begin(), roots.end());
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    if (stop[id]) continue;
    for (const Endpoint& e : graph.node(id).inputs()) stack.push_back(e.node);
    for (NodeId c : graph.node(id).control_inputs()) stack.push_back(c);
  }
  return seen;
}

}  // namespace optfarm::graph
