// Rules of ops that work along an axis.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/layout/layout_rules.h"

namespace optfarm::transforms {
namespace {

// The axes stand in an input. They may leave the result.
class AxesRule final : public LayoutRule {
 public:
  AxesRule(const LayoutSubject& subject, int rank, std::vector<int> carried,
           int axes_input, std::vector<int> axes, bool keeps_axes)
      : LayoutRule(rank, std::move(carried)),
        id_(subject.id),
        axes_input_(axes_input),
        is_scalar_(subject.input(axes_input).rank() == 0),
        removed_(rank, false),
        axes_(std::move(axes)) {
    for (int axis : axes_) removed_[axis] = !keeps_axes;
  }

  // Nothing behind the node changes where its axes are gone.
  bool Serves(const Permutation& state) const override {
    return !Removes() || IsIdentity(Without(state, removed_));
  }
  Permutation Output(const Permutation& state) const override {
    return Removes() ? Without(state, removed_) : state;
  }
  std::optional<Permutation> StateFor(
      const Permutation& output) const override {
    if (Removes()) return std::nullopt;
    return LayoutRule::StateFor(output);
  }
  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    const Permutation place = Inverse(state);
    std::vector<int64_t> axes;
    for (int axis : axes_) axes.push_back(place[axis]);
    std::sort(axes.begin(), axes.end());
    return editor->SetNumbers(id_, axes_input_, "axis", axes, is_scalar_);
  }

 private:
  bool Removes() const {
    return std::find(removed_.begin(), removed_.end(), true) != removed_.end();
  }

  const graph::NodeId id_;
  const int axes_input_;
  const bool is_scalar_;
  std::vector<bool> removed_;
  const std::vector<int> axes_;
};

// `axes_input` holds axes of the inputs `carried`, which have the same rank.
std::unique_ptr<LayoutRule> MakeRule(const LayoutSubject& subject,
                                     std::vector<int> carried, int axes_input,
                                     bool keeps_axes) {
  if (carried.empty() || axes_input >= subject.input_count()) return nullptr;
  for (int i : carried) {
    if (i >= subject.input_count() || !subject.input(i).has_rank() ||
        subject.input(i).rank() != subject.input(carried[0]).rank()) {
      return nullptr;
    }
  }
  const int rank = subject.input(carried[0]).rank();
  auto axes = subject.Axes(axes_input, rank);
  if (!axes.has_value()) return nullptr;
  return std::make_unique<AxesRule>(subject, rank, std::move(carried),
                                    axes_input, *std::move(axes), keeps_axes);
}

}  // namespace

std::unique_ptr<LayoutRule> MakeConcatRule(const LayoutSubject& subject) {
  const int count = subject.input_count();
  if (count < 2) return nullptr;
  const bool has_axis_first = graph::RowOf(subject.node().op()).has_axis_first;
  std::vector<int> carried;
  for (int i = 0; i < count - 1; ++i) carried.push_back(has_axis_first + i);
  return MakeRule(subject, std::move(carried), has_axis_first ? 0 : count - 1,
                  true);
}

std::unique_ptr<LayoutRule> MakeSplitRule(const LayoutSubject& subject) {
  return MakeRule(subject, {1}, 0, true);
}

std::unique_ptr<LayoutRule> MakeSplitVRule(const LayoutSubject& subject) {
  return MakeRule(subject, {0}, 2, true);
}

std::unique_ptr<LayoutRule> MakeReductionRule(const LayoutSubject& subject) {
  const auto keeps = graph::GetBoolOr(subject.node().def(), "keep_dims", false);
  if (!keeps.ok()) return nullptr;
  return MakeRule(subject, {0}, 1, *keeps);
}

std::unique_ptr<LayoutRule> MakeArgMaxRule(const LayoutSubject& subject) {
  return MakeRule(subject, {0}, 1, false);
}

std::unique_ptr<LayoutRule> MakeGatherRule(const LayoutSubject& subject) {
  const auto batch = graph::GetIntOr(subject.node().def(), "batch_dims", 0);
  if (subject.input_count() != 3 || !batch.ok() || *batch != 0 ||
      !subject.input(1).has_rank() || subject.input(1).rank() > 1) {
    return nullptr;
  }
  return MakeRule(subject, {0}, 2, subject.input(1).rank() == 1);
}

std::unique_ptr<LayoutRule> MakeAxesRule(const LayoutSubject& subject) {
  return MakeRule(subject, {0}, 1, true);
}

}  // namespace optfarm::transforms
