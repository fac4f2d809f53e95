// A graph without its Transposes: what they do is written on the edges, as the
// order in which a node reads a tensor. Nodes that have a rule may get another
// state; then the edges around them need other orders, or none.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_TURNED_GRAPH_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_TURNED_GRAPH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/layout/layout_rule.h"
#include "engine/transforms/layout/permutation.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// `consumer` reads Transpose(source, turn).
struct TurnedEdge {
  // Of a node that is no Transpose, or one that somebody needs as it is.
  graph::Endpoint source;
  // Of the source's rank.
  Permutation turn;
  graph::NodeId consumer = graph::kNoNode;
  int input = 0;
  // Whether the consumer has a rule and carries this input.
  bool is_carried = false;
};

// States by NodeId; an empty one is the order that the graph has.
using LayoutStates = std::vector<Permutation>;

// OWNERSHIP: graph and context outlive it. Apply is the last call.
class TurnedGraph {
 public:
  // ERRORS: InferShapesWithInputs'.
  static absl::StatusOr<std::unique_ptr<TurnedGraph>> Create(
      graph::Graph* graph, TransformContext* context);

  // All edges whose order can change, or is no identity now.
  const std::vector<TurnedEdge>& edges() const { return edges_; }
  // nullptr for a node that stays as it is.
  const LayoutRule* rule(graph::NodeId id) const { return rules_[id].get(); }
  bool IsConst(graph::Endpoint tensor) const;
  bool IsReshape(graph::Endpoint tensor) const;
  const graph::PartialShape& ShapeOf(graph::Endpoint tensor) const {
    return shapes_.Of(tensor);
  }
  // UNITS: bytes of an element; those of a float where the type is not known.
  int64_t ElementBytes(graph::Endpoint tensor) const;
  graph::NodeId id_limit() const {
    return static_cast<graph::NodeId>(rules_.size());
  }

  // Gives the nodes these states, and every edge what it needs then. Without
  // states: neighbouring Transposes become one, and those of constants none.
  // `reshapes`: those that move no element become Reshapes, which nobody can
  // undo any more.
  absl::Status Apply(const LayoutStates& states, bool reshapes);

 private:
  TurnedGraph(graph::Graph* graph, TransformContext* context)
      : graph_(graph), context_(context) {}

  void FindTransposes();
  void FindRules();
  void FindEdges();
  bool MayVanish(graph::NodeId id) const;
  TurnedEdge Resolve(graph::NodeId consumer, int input) const;
  absl::Status ApplyRules(const LayoutStates& states, bool changes_readers,
                          OperandEditor* editor);
  absl::Status Connect(const TurnedEdge& edge, const LayoutStates& states,
                       bool reshapes, OperandEditor* editor);
  absl::Status ConnectTranspose(const TurnedEdge& edge,
                                const graph::PartialShape& shape,
                                const Permutation& order, bool reshapes,
                                OperandEditor* editor);
  void NoteTransposes(const LayoutStates& states, bool reshapes,
                      OperandEditor* editor) const;

  graph::Graph* graph_;
  TransformContext* context_;
  graph::ShapeMap shapes_;
  // By NodeId: the order of a Transpose that is known; empty for other nodes.
  std::vector<Permutation> orders_;
  // Of these, those that nobody needs for themselves.
  std::vector<bool> vanishes_;
  std::vector<std::unique_ptr<LayoutRule>> rules_;
  std::vector<TurnedEdge> edges_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_TURNED_GRAPH_H_
