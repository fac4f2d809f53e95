// What a node does when its tensors come with their axes in another order. Each
// kind of op that can compute so has a rule (layout_rules.h lists them); all
// others want their tensors as they are.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULE_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/layout/operand_editor.h"
#include "engine/transforms/layout/permutation.h"

namespace optfarm::transforms {

// OWNERSHIP: of a node, graph and shapes, all borrowed.
struct LayoutSubject {
  const graph::Graph& graph;
  const graph::ShapeMap& shapes;
  graph::NodeId id;

  const graph::Node& node() const { return graph.node(id); }
  int input_count() const { return static_cast<int>(node().inputs().size()); }
  const graph::PartialShape& input(int i) const {
    return shapes.Of(node().inputs()[i]);
  }
  const graph::PartialShape& output(int port = 0) const {
    return shapes.Of({id, port});
  }
  bool IsConstInput(int i) const;
  // An input of whole numbers; nullopt when one is not known.
  std::optional<std::vector<int64_t>> Numbers(int i) const;
  // An input that is a list of axes of a tensor of this rank, or one of them;
  // counted from 0. nullopt when they are not known, or not such axes.
  std::optional<std::vector<int>> Axes(int i, int rank) const;
  std::optional<int> Axis(int i, int rank) const;
};

// A node's state is the order of the tensors that it carries: its input is
// Transpose(what the graph says, state).
class LayoutRule {
 public:
  LayoutRule(int rank, std::vector<int> carried)
      : rank_(rank), carried_(std::move(carried)) {}
  virtual ~LayoutRule() = default;

  int rank() const { return rank_; }
  // The inputs that come in the state's order.
  const std::vector<int>& carried() const { return carried_; }

  // Whether the node can compute so. REQUIRES of all: an order of this rank.
  virtual bool Serves(const Permutation& state) const {
    (void)state;
    return true;
  }
  // The order of the outputs then. REQUIRES: Serves(state).
  virtual Permutation Output(const Permutation& state) const { return state; }
  // A state whose outputs have this order, which may be of another rank.
  virtual std::optional<Permutation> StateFor(const Permutation& output) const {
    if (static_cast<int>(output.size()) != rank_) return std::nullopt;
    return output;
  }
  // Changes attributes, and inputs that are not carried, once all inputs are
  // what they are to be. REQUIRES: Serves(state).
  virtual absl::Status Apply(const Permutation& state,
                             OperandEditor* editor) const {
    (void)state, (void)editor;
    return absl::OkStatus();
  }
  // Whether Apply changes what the node's readers read, so that it has to come
  // after all others.
  virtual bool ChangesReaders() const { return false; }

 private:
  int rank_;
  std::vector<int> carried_;
};

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_LAYOUT_RULE_H_
