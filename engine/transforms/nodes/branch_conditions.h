// Under which conditions each node runs: what a control edge says besides
// order. Taking one away is safe only where something else says the same.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_BRANCH_CONDITIONS_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_BRANCH_CONDITIONS_H_

#include <set>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// A predicate's node, output, and the value it must have.
struct Condition {
  graph::Endpoint predicate;
  int side = 0;

  friend auto operator<=>(const Condition& a, const Condition& b) {
    return std::tuple(a.predicate.node, a.predicate.port, a.side) <=>
           std::tuple(b.predicate.node, b.predicate.port, b.side);
  }
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Conditions {
  // All of these hold whenever the tensor comes about.
  std::set<Condition> needed;
  // And they suffice for it.
  bool suffice = true;
};

// THREADS: const methods may run concurrently.
class BranchConditions {
 public:
  // The graph may lose nodes and edges afterwards; what is said stays true of
  // the rest. ERRORS: InvalidArgument for a cyclic graph.
  static absl::StatusOr<BranchConditions> Of(const graph::Graph& graph);

  // Whether `node`, made from its remaining inputs alone, runs only when
  // `source` does, so that a control edge between them says nothing but order.
  bool ImpliedByInputs(const graph::Graph& graph, graph::NodeId source,
                       graph::NodeId node) const;

  // Whether the node stands in a loop or behind one. Nothing is known there.
  bool IsUnknown(graph::NodeId id) const { return !nodes_[id].suffice; }

 private:
  // Of an edge that leaves a node.
  Conditions OfEdge(const graph::Graph& graph, graph::NodeId source,
                    int port) const;

  // By number.
  std::vector<Conditions> nodes_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_BRANCH_CONDITIONS_H_
