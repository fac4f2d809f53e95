// Rules of ops that are given numbers for each axis.

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/transforms/layout/layout_rules.h"

namespace optfarm::transforms {
namespace {

class ExtentsRule final : public LayoutRule {
 public:
  ExtentsRule(graph::NodeId id, int rank, std::vector<int> extents)
      : LayoutRule(rank, {0}), id_(id), extents_(std::move(extents)) {}

  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    for (int input : extents_) {
      OPTFARM_RETURN_IF_ERROR(
          editor->ReorderRows(id_, input, "extents", state));
    }
    return absl::OkStatus();
  }

 private:
  const graph::NodeId id_;
  const std::vector<int> extents_;
};

constexpr const char* kSliceMasks[] = {"begin_mask", "end_mask"};

// Where begin, end and stride belong to one axis each, the first ones.
class StridedSliceRule final : public LayoutRule {
 public:
  struct Bounds {
    // Begin, end and stride.
    std::vector<int64_t> numbers[3];
    // By axis, as kSliceMasks.
    std::vector<bool> is_open[2];
  };

  StridedSliceRule(graph::NodeId id, int rank, Bounds bounds)
      : LayoutRule(rank, {0}), id_(id), bounds_(std::move(bounds)) {}

  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    constexpr absl::string_view kNames[] = {"begin", "end", "strides"};
    for (int i = 0; i < 3; ++i) {
      std::vector<int64_t> numbers;
      for (int axis : state) numbers.push_back(bounds_.numbers[i][axis]);
      OPTFARM_RETURN_IF_ERROR(
          editor->SetNumbers(id_, 1 + i, kNames[i], numbers, false));
    }
    tensorflow::NodeDef* def =
        editor->graph()->mutable_node(id_)->mutable_def();
    for (int i = 0; i < 2; ++i) {
      int64_t mask = 0;
      for (size_t k = 0; k < state.size(); ++k) {
        if (bounds_.is_open[i][state[k]]) mask |= int64_t{1} << k;
      }
      graph::SetInt(def, kSliceMasks[i], mask);
    }
    return absl::OkStatus();
  }

 private:
  const graph::NodeId id_;
  const Bounds bounds_;
};

class ResizeRule final : public LayoutRule {
 public:
  ResizeRule(graph::NodeId id, int rank, std::vector<int> axes)
      : LayoutRule(rank, {0}), id_(id), axes_(std::move(axes)) {}

  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    const Permutation place = Inverse(state);
    auto* list = (*editor->graph()
                       ->mutable_node(id_)
                       ->mutable_def()
                       ->mutable_attr())["axes"]
                     .mutable_list();
    list->clear_i();
    for (int axis : axes_) list->add_i(place[axis]);
    return absl::OkStatus();
  }

 private:
  const graph::NodeId id_;
  const std::vector<int> axes_;
};

class ShapeRule final : public LayoutRule {
 public:
  ShapeRule(graph::NodeId id, int rank) : LayoutRule(rank, {0}), id_(id) {}

  Permutation Output(const Permutation&) const override { return {0}; }
  std::optional<Permutation> StateFor(const Permutation&) const override {
    return std::nullopt;
  }
  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    const graph::Endpoint sizes = {id_, 0};
    OPTFARM_ASSIGN_OR_RETURN(const graph::Endpoint old,
                             editor->Reordered(sizes, Inverse(state)));
    editor->graph()->RedirectUses(sizes, old, old.node);
    return absl::OkStatus();
  }
  bool ChangesReaders() const override { return true; }

 private:
  const graph::NodeId id_;
};

}  // namespace

std::unique_ptr<LayoutRule> MakeExtentsRule(const LayoutSubject& subject) {
  const bool is_slice = subject.node().op() == "Slice";
  if (subject.input_count() < (is_slice ? 3 : 2) ||
      !subject.input(0).has_rank()) {
    return nullptr;
  }
  const int rank = subject.input(0).rank();
  std::vector<int> extents = {1};
  if (is_slice) extents.push_back(2);
  for (int input : extents) {
    const graph::PartialShape& shape = subject.input(input);
    if (!shape.has_rank() || shape.rank() < 1 || shape.dim(0) != rank) {
      return nullptr;
    }
  }
  return std::make_unique<ExtentsRule>(subject.id, rank, std::move(extents));
}

std::unique_ptr<LayoutRule> MakeStridedSliceRule(const LayoutSubject& subject) {
  if (subject.input_count() != 4 || !subject.input(0).has_rank()) {
    return nullptr;
  }
  const tensorflow::NodeDef& def = subject.node().def();
  for (const char* mask :
       {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (graph::GetIntOr(def, mask, 0).value_or(-1) != 0) return nullptr;
  }
  const int rank = subject.input(0).rank();
  StridedSliceRule::Bounds bounds;
  size_t given = 0;
  for (int i = 0; i < 3; ++i) {
    auto numbers = subject.Numbers(1 + i);
    if (!numbers.has_value() || static_cast<int>(numbers->size()) > rank ||
        (i > 0 && numbers->size() != given)) {
      return nullptr;
    }
    given = numbers->size();
    numbers->resize(rank, i == 2 ? 1 : 0);
    bounds.numbers[i] = *std::move(numbers);
  }
  for (int i = 0; i < 2; ++i) {
    const auto mask = graph::GetIntOr(def, kSliceMasks[i], 0);
    if (!mask.ok() || rank > 62) return nullptr;
    for (int axis = 0; axis < rank; ++axis) {
      bounds.is_open[i].push_back(axis >= static_cast<int>(given) ||
                                  ((*mask >> axis) & 1) != 0);
    }
  }
  return std::make_unique<StridedSliceRule>(subject.id, rank,
                                            std::move(bounds));
}

std::unique_ptr<LayoutRule> MakeResizeRule(const LayoutSubject& subject) {
  if (subject.input_count() < 1 || !subject.input(0).has_rank()) {
    return nullptr;
  }
  const int rank = subject.input(0).rank();
  const auto listed = graph::GetIntsOr(subject.node().def(), "axes", {});
  if (!listed.ok()) return nullptr;
  std::vector<int> axes;
  for (int64_t axis : *listed) {
    if (axis < -rank || axis >= rank) return nullptr;
    axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  if (axes.empty()) axes = IdentityOf(rank);
  return std::make_unique<ResizeRule>(subject.id, rank, std::move(axes));
}

std::unique_ptr<LayoutRule> MakeShapeRule(const LayoutSubject& subject) {
  if (subject.input_count() != 1 || !subject.input(0).has_rank()) {
    return nullptr;
  }
  return std::make_unique<ShapeRule>(subject.id, subject.input(0).rank());
}

}  // namespace optfarm::transforms
