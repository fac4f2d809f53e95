#include "engine/inspect/unset_variables.h"

#include <set>

#include "engine/graph/ops/op_table.h"

namespace optfarm::inspect {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

bool IsVariable(const Node& node) { return graph::IsVariable(node.op()); }

// Reads a resource variable and needs its value; other readers bring one for
// the first run.
bool NeedsValue(const Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kReadVariable) ||
         node.op() == "ResourceGather";
}

bool Assigns(const Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kAssign);
}

}  // namespace

std::vector<std::string> FindUnsetVariables(const Graph& graph,
                                            absl::Span<const NodeId> outputs) {
  const std::vector<bool> needed = graph::ReachableFrom(graph, outputs, {});
  std::set<NodeId> assigned, read;
  for (const NodeId id : graph.Ids()) {
    if (!needed[id]) continue;
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const NodeId source = node.inputs()[i].node;
      if (!IsVariable(graph.node(source))) continue;
      const bool is_resource = graph::HasRole(graph.node(source).op(),
                                              graph::OpRole::kResourceVariable);
      if (i == 0 && Assigns(node)) {
        assigned.insert(source);
      } else if (!is_resource || NeedsValue(node)) {
        read.insert(source);
      }
    }
  }
  std::vector<std::string> names;
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (IsVariable(node) && needed[id] && read.contains(id) &&
        !assigned.contains(id)) {
      names.push_back(node.name());
    }
  }
  return names;
}

}  // namespace optfarm::inspect
