// Reshape, Squeeze and ExpandDims: the axes of input and output fall into
// groups, one behind the other, that hold the same elements:
//
//   [2,3,4,5] to [2,12,5]     {2|2} {3,4|12} {5|5}
//
// A group stays together in every order that such a node can work in; axes of
// size 1 belong to none.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/transforms/layout/layout_rules.h"

namespace optfarm::transforms {
namespace {

using graph::PartialShape;

struct AxisGroup {
  std::vector<int> in;
  std::vector<int> out;
};

// The axes of a shape that are larger than 1, and their sizes.
struct LargeAxes {
  std::vector<int> axes;
  std::vector<int64_t> sizes;
};

// Stands for an unknown size: a prime that no sum of dimensions is likely to
// hit, and what is grouped by it is checked.
constexpr int64_t kUnknownSize = 2147483647;

std::optional<LargeAxes> FindLargeAxes(const PartialShape& shape) {
  LargeAxes large;
  int unknown = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t size = shape.dim(i);
    // An empty tensor has no groups; a size like ours would look unknown.
    if (size == 0 || size % kUnknownSize == 0) return std::nullopt;
    if (size == 1) continue;
    unknown += size == graph::kUnknownDim ? 1 : 0;
    large.axes.push_back(i);
    large.sizes.push_back(size == graph::kUnknownDim ? kUnknownSize : size);
  }
  if (unknown > 1) return std::nullopt;
  return large;
}

std::optional<std::vector<AxisGroup>> FindGroups(const PartialShape& in,
                                                 const PartialShape& out) {
  const auto from = FindLargeAxes(in);
  const auto to = FindLargeAxes(out);
  if (!from.has_value() || !to.has_value()) return std::nullopt;
  std::vector<AxisGroup> groups;
  size_t i = 0;
  size_t k = 0;
  while (i < from->axes.size() && k < to->axes.size()) {
    AxisGroup group = {{from->axes[i]}, {to->axes[k]}};
    int64_t of_in = from->sizes[i++];
    int64_t of_out = to->sizes[k++];
    while (of_in != of_out) {
      const bool is_in = of_in < of_out;
      const LargeAxes& side = is_in ? *from : *to;
      size_t& next = is_in ? i : k;
      int64_t& size = is_in ? of_in : of_out;
      if (next == side.axes.size() ||
          __builtin_mul_overflow(size, side.sizes[next], &size)) {
        return std::nullopt;
      }
      (is_in ? group.in : group.out).push_back(side.axes[next++]);
    }
    groups.push_back(std::move(group));
  }
  if (i < from->axes.size() || k < to->axes.size()) return std::nullopt;
  return groups;
}

// The order of the groups in an order of all axes; nullopt where one is torn
// apart. `side` are the groups' axes there.
std::optional<std::vector<int>> OrderOfGroups(
    const Permutation& order, const std::vector<std::vector<int>>& side) {
  std::vector<int> group_of(order.size(), -1);
  for (size_t g = 0; g < side.size(); ++g) {
    for (int axis : side[g]) group_of[axis] = static_cast<int>(g);
  }
  std::vector<int> groups;
  size_t place = 0;
  for (int axis : order) {
    const int group = group_of[axis];
    if (group < 0) continue;
    if (groups.empty() || place == side[groups.back()].size()) {
      groups.push_back(group);
      place = 0;
    }
    if (groups.back() != group || side[group][place] != axis) {
      return std::nullopt;
    }
    ++place;
  }
  return groups;
}

// All axes with the groups in this order. Those of no group follow the one
// before which they stand.
Permutation OrderOfAxes(int rank, const std::vector<int>& groups,
                        const std::vector<std::vector<int>>& side) {
  std::vector<bool> is_grouped(rank, false);
  for (const auto& axes : side) {
    for (int axis : axes) is_grouped[axis] = true;
  }
  Permutation order;
  const auto add_ones = [&](int axis) {
    for (; axis < rank && !is_grouped[axis]; ++axis) order.push_back(axis);
  };
  add_ones(0);
  for (int group : groups) {
    for (int axis : side[group]) {
      order.push_back(axis);
      add_ones(axis + 1);
    }
  }
  return order;
}

class ReshapeRule final : public LayoutRule {
 public:
  ReshapeRule(const LayoutSubject& subject,
              const std::vector<AxisGroup>& groups)
      : LayoutRule(subject.input(0).rank(), {0}),
        id_(subject.id),
        out_(subject.output()) {
    for (const AxisGroup& group : groups) {
      ins_.push_back(group.in);
      outs_.push_back(group.out);
    }
  }

  bool Serves(const Permutation& state) const override {
    return OrderOfGroups(state, ins_).has_value();
  }
  Permutation Output(const Permutation& state) const override {
    return OrderOfAxes(out_.rank(), *OrderOfGroups(state, ins_), outs_);
  }
  std::optional<Permutation> StateFor(
      const Permutation& output) const override {
    if (static_cast<int>(output.size()) != out_.rank()) return std::nullopt;
    const auto groups = OrderOfGroups(output, outs_);
    if (!groups.has_value()) return std::nullopt;
    Permutation state = OrderOfAxes(rank(), *groups, ins_);
    // Axes of size 1 elsewhere would be another order of the output.
    if (Output(state) != output) return std::nullopt;
    return state;
  }
  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    graph::Graph* graph = editor->graph();
    const graph::Endpoint data = graph->node(id_).inputs()[0];
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                             editor->TypeOf({id_, 0}));
    const PartialShape shape = Permuted(out_, Output(state));
    // As a Reshape that is made anew, under the old name.
    const graph::Endpoint made = editor->Reshaped(
        data, {shape.dims().begin(), shape.dims().end()}, dtype);
    const graph::Endpoint target = graph->node(made.node).inputs()[1];
    graph::Node* node = graph->mutable_node(id_);
    tensorflow::NodeDef* def = node->mutable_def();
    def->set_op("Reshape");
    for (const char* attribute : {"squeeze_dims", "Tdim"}) {
      def->mutable_attr()->erase(attribute);
    }
    graph::SetType(def, "T", dtype);
    graph::CopyAttr(graph->node(made.node).def(), "Tshape", def);
    graph->Remove(made.node);
    graph->SetInputs(id_, {data, target});
    return absl::OkStatus();
  }

 private:
  const graph::NodeId id_;
  const PartialShape out_;
  // The groups' axes.
  std::vector<std::vector<int>> ins_;
  std::vector<std::vector<int>> outs_;
};

}  // namespace

std::unique_ptr<LayoutRule> MakeReshapeRule(const LayoutSubject& subject) {
  if (subject.input_count() < 1 || !subject.input(0).has_rank() ||
      !subject.output().has_rank()) {
    return nullptr;
  }
  const auto groups = FindGroups(subject.input(0), subject.output());
  if (!groups.has_value()) return nullptr;
  return std::make_unique<ReshapeRule>(subject, *groups);
}

}  // namespace optfarm::transforms
