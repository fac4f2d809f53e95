#include "engine/transforms/nodes/branch_conditions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/status_macros.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// Nests are a few deep in models; more is not followed.
constexpr size_t kMostConditions = 16;

bool IsSwitch(const graph::Node& node) { return graph::IsSwitch(node.op()); }

bool IsLoopOp(const std::string& op) {
  return graph::IsEnter(op) || graph::IsExit(op) ||
         graph::IsNextIteration(op) ||
         graph::HasRole(op, graph::OpRole::kLoopCond) || op == "_SwitchN";
}

// The predicate itself, not the Switch or Identity that hands it into a branch:
// conditions on the same value are then seen to be the same.
Endpoint PredicateOf(const Graph& graph, Endpoint at) {
  for (int steps = 0; steps < graph.node_count(); ++steps) {
    const graph::Node& node = graph.node(at.node);
    if ((!graph::IsIdentity(node.op()) && !IsSwitch(node)) ||
        node.inputs().empty()) {
      break;
    }
    at = node.inputs()[0];
  }
  return at;
}

void Add(const Conditions& from, Conditions* to) {
  to->needed.insert(from.needed.begin(), from.needed.end());
  to->suffice = to->suffice && from.suffice;
  if (to->needed.size() > kMostConditions) *to = {{}, false};
}

// Of a Merge that takes `a` or `b`: exact where the two differ in the two sides
// of one predicate alone.
Conditions Either(const Conditions& a, const Conditions& b) {
  Conditions either;
  std::set_intersection(a.needed.begin(), a.needed.end(), b.needed.begin(),
                        b.needed.end(),
                        std::inserter(either.needed, either.needed.begin()));
  std::vector<Condition> only_a, only_b;
  std::set_difference(a.needed.begin(), a.needed.end(), b.needed.begin(),
                      b.needed.end(), std::back_inserter(only_a));
  std::set_difference(b.needed.begin(), b.needed.end(), a.needed.begin(),
                      a.needed.end(), std::back_inserter(only_b));
  either.suffice = a.suffice && b.suffice && only_a.size() == 1 &&
                   only_b.size() == 1 &&
                   only_a[0].predicate == only_b[0].predicate &&
                   only_a[0].side != only_b[0].side;
  return either;
}

}  // namespace

absl::StatusOr<BranchConditions> BranchConditions::Of(const Graph& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph));
  BranchConditions all;
  all.nodes_.resize(static_cast<size_t>(graph.id_limit()));
  for (NodeId id : order) {
    const graph::Node& node = graph.node(id);
    Conditions& own = all.nodes_[id];
    const bool is_merge = graph::IsMerge(node.op());
    if (is_merge && node.inputs().size() == 2) {
      own = Either(
          all.OfEdge(graph, node.inputs()[0].node, node.inputs()[0].port),
          all.OfEdge(graph, node.inputs()[1].node, node.inputs()[1].port));
      continue;
    }
    if (is_merge || IsLoopOp(node.op())) {
      own.suffice = false;
      continue;
    }
    for (const Endpoint& e : node.inputs()) {
      Add(all.OfEdge(graph, e.node, e.port), &own);
    }
    for (NodeId control : node.control_inputs()) {
      Add(all.OfEdge(graph, control, graph::kControlPort), &own);
    }
  }
  return all;
}

Conditions BranchConditions::OfEdge(const Graph& graph, NodeId source,
                                    int port) const {
  Conditions conditions = nodes_[source];
  const graph::Node& node = graph.node(source);
  if (IsSwitch(node) && port != graph::kControlPort &&
      node.inputs().size() == 2) {
    conditions.needed.insert({PredicateOf(graph, node.inputs()[1]), port});
  }
  return conditions;
}

bool BranchConditions::ImpliedByInputs(const Graph& graph, NodeId source,
                                       NodeId node) const {
  if (!nodes_[source].suffice) return false;
  std::set<Condition> known;
  for (const Endpoint& e : graph.node(node).inputs()) {
    const Conditions edge = OfEdge(graph, e.node, e.port);
    known.insert(edge.needed.begin(), edge.needed.end());
  }
  for (NodeId control : graph.node(node).control_inputs()) {
    if (control == source) continue;
    const Conditions edge = OfEdge(graph, control, graph::kControlPort);
    known.insert(edge.needed.begin(), edge.needed.end());
  }
  const std::set<Condition>& needed = nodes_[source].needed;
  return std::includes(known.begin(), known.end(), needed.begin(),
                       needed.end());
}

}  // namespace optfarm::transforms
