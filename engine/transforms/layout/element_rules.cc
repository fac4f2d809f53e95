// Rules of ops that compute element by element.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/arrays/transpose.h"
#include "engine/transforms/layout/layout_rules.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::PartialShape;
using runtime::Tensor;

// Ones before the dimensions, up to the rank.
PartialShape Extended(const PartialShape& shape, int rank) {
  std::vector<int64_t> dims(rank - shape.rank(), 1);
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return PartialShape(std::move(dims));
}

// Without the ones that broadcasting puts there anyway.
std::vector<int64_t> DropLeadingOnes(absl::Span<const int64_t> dims) {
  const auto first = std::find_if(dims.begin(), dims.end(),
                                  [](int64_t dim) { return dim != 1; });
  return {first, dims.end()};
}

class BroadcastRule final : public LayoutRule {
 public:
  BroadcastRule(const LayoutSubject& subject, int rank,
                std::vector<int> carried, std::vector<int> others)
      : LayoutRule(rank, std::move(carried)), subject_(subject) {
    for (int input : others) others_.push_back({input, subject.input(input)});
  }

  bool Serves(const Permutation& state) const override {
    return std::all_of(others_.begin(), others_.end(), [&](const Other& other) {
      const auto& [input, shape] = other;
      if (subject_.IsConstInput(input) || IsUntouched(shape, state)) {
        return true;
      }
      const int unknown = static_cast<int>(std::count(
          shape.dims().begin(), shape.dims().end(), graph::kUnknownDim));
      return unknown <= 1 && KeepsElements(Extended(shape, rank()), state);
    });
  }

  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    for (const Other& other : others_) {
      if (IsUntouched(other.shape, state)) continue;
      OPTFARM_RETURN_IF_ERROR(subject_.IsConstInput(other.input)
                                  ? ReorderConstant(other.input, state, editor)
                                  : ReorderTensor(other, state, editor));
    }
    return absl::OkStatus();
  }

 private:
  struct Other {
    int input = 0;
    PartialShape shape;
  };

  // Whether a tensor of lower rank is broadcast as before.
  bool IsUntouched(const PartialShape& shape, const Permutation& state) const {
    if (shape.elements() == 1) return true;
    for (int i = rank() - shape.rank(); i < rank(); ++i) {
      if (state[i] != i) return false;
    }
    return true;
  }

  absl::Status ReorderConstant(int input, const Permutation& state,
                               OperandEditor* editor) const {
    const graph::Node& source =
        subject_.graph.node(subject_.node().inputs()[input].node);
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstValue(source));
    std::vector<int64_t> dims(rank() - value.rank(), 1);
    dims.insert(dims.end(), value.shape().dims().begin(),
                value.shape().dims().end());
    OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape extended,
                             runtime::Shape::FromDims(dims));
    runtime::ThreadPool pool(1);
    OPTFARM_ASSIGN_OR_RETURN(
        const Tensor turned,
        runtime::Transposed(value.Reshaped(extended), state, &pool));
    OPTFARM_ASSIGN_OR_RETURN(
        const runtime::Shape shape,
        runtime::Shape::FromDims(DropLeadingOnes(turned.shape().dims())));
    editor->SetConstant(subject_.id, input, "operand", turned.Reshaped(shape));
    return absl::OkStatus();
  }

  absl::Status ReorderTensor(const Other& other, const Permutation& state,
                             OperandEditor* editor) const {
    const graph::Endpoint source = subject_.node().inputs()[other.input];
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::DataType dtype,
                             editor->TypeOf(source));
    const PartialShape turned = Permuted(Extended(other.shape, rank()), state);
    editor->graph()->SetInput(
        subject_.id, other.input,
        editor->Reshaped(source, DropLeadingOnes(turned.dims()), dtype));
    return absl::OkStatus();
  }

  const LayoutSubject subject_;
  // Constants, and inputs of lower rank.
  std::vector<Other> others_;
};

class LinearQuantizationRule final : public LayoutRule {
 public:
  // No axis: one scale for all.
  LinearQuantizationRule(const LayoutSubject& subject, int rank,
                         std::optional<int> axis)
      : LayoutRule(rank, {0}), subject_(subject), axis_(axis) {}

  absl::Status Apply(const Permutation& state,
                     OperandEditor* editor) const override {
    if (!axis_.has_value()) return absl::OkStatus();
    graph::SetInt(editor->graph()->mutable_node(subject_.id)->mutable_def(),
                  "axis", Inverse(state)[*axis_]);
    return absl::OkStatus();
  }

 private:
  const LayoutSubject subject_;
  const std::optional<int> axis_;
};

class LastAxisRule final : public LayoutRule {
 public:
  explicit LastAxisRule(int rank) : LayoutRule(rank, {0}) {}

  bool Serves(const Permutation& state) const override {
    return state.back() == rank() - 1;
  }
};

// From one place of the channels to the other.
class FormatRule final : public LayoutRule {
 public:
  FormatRule(graph::NodeId id, int rank, bool is_last)
      : LayoutRule(rank, {0}), id_(id), is_last_(is_last) {
    to_last_ = {0};
    for (int i = 2; i < rank; ++i) to_last_.push_back(i);
    to_last_.push_back(1);
  }

  bool Serves(const Permutation& state) const override {
    return IsIdentity(state) || (is_last_ ? Inverse(state) : state) == to_last_;
  }
  absl::Status Apply(const Permutation&, OperandEditor* editor) const override {
    graph::SetString(editor->graph()->mutable_node(id_)->mutable_def(),
                     "data_format", is_last_ ? "NCHW" : "NHWC");
    return absl::OkStatus();
  }

 private:
  const graph::NodeId id_;
  const bool is_last_;
  Permutation to_last_;
};

}  // namespace

std::unique_ptr<LayoutRule> MakeUnaryRule(const LayoutSubject& subject) {
  if (subject.input_count() < 1 || !subject.input(0).has_rank()) return nullptr;
  return std::make_unique<LayoutRule>(subject.input(0).rank(),
                                      std::vector<int>{0});
}

std::unique_ptr<LayoutRule> MakeClipRule(const LayoutSubject& subject) {
  for (int i = 1; i < subject.input_count(); ++i) {
    if (subject.input(i) != PartialShape::Scalar()) return nullptr;
  }
  return MakeUnaryRule(subject);
}

std::unique_ptr<LayoutRule> MakeBroadcastRule(const LayoutSubject& subject) {
  int rank = 0;
  for (int i = 0; i < subject.input_count(); ++i) {
    if (!subject.input(i).has_rank()) return nullptr;
    rank = std::max(rank, subject.input(i).rank());
  }
  std::vector<int> carried;
  std::vector<int> others;
  for (int i = 0; i < subject.input_count(); ++i) {
    const bool is_carried =
        subject.input(i).rank() == rank && !subject.IsConstInput(i);
    (is_carried ? carried : others).push_back(i);
  }
  if (carried.empty()) return nullptr;
  return std::make_unique<BroadcastRule>(subject, rank, std::move(carried),
                                         std::move(others));
}

std::unique_ptr<LayoutRule> MakeAlikeRule(const LayoutSubject& subject) {
  std::vector<int> carried;
  for (int i = 0; i < subject.input_count(); ++i) {
    if (!subject.input(i).has_rank() ||
        subject.input(i).rank() != subject.input(0).rank()) {
      return nullptr;
    }
    carried.push_back(i);
  }
  if (carried.empty()) return nullptr;
  return std::make_unique<LayoutRule>(subject.input(0).rank(),
                                      std::move(carried));
}

std::unique_ptr<LayoutRule> MakeLinearQuantizationRule(
    const LayoutSubject& subject) {
  if (subject.input_count() < 2 || !subject.input(0).has_rank()) return nullptr;
  const int rank = subject.input(0).rank();
  const PartialShape& scale = subject.input(1);
  if (!scale.is_static()) return nullptr;
  if (scale.elements() == 1) {
    return std::make_unique<LinearQuantizationRule>(subject, rank,
                                                    std::nullopt);
  }
  const auto axis = graph::GetIntOr(subject.node().def(), "axis", -1);
  if (scale.rank() != 1 || !axis.ok() || *axis < -rank || *axis >= rank) {
    return nullptr;
  }
  return std::make_unique<LinearQuantizationRule>(
      subject, rank, static_cast<int>(*axis < 0 ? *axis + rank : *axis));
}

std::unique_ptr<LayoutRule> MakeFormatRule(const LayoutSubject& subject) {
  const absl::StatusOr<bool> is_nchw = graph::IsNchw(subject.node().def());
  if (subject.input_count() < 1 || !subject.input(0).has_rank() ||
      subject.input(0).rank() < 3 || !is_nchw.ok()) {
    return nullptr;
  }
  return std::make_unique<FormatRule>(subject.id, subject.input(0).rank(),
                                      !*is_nchw);
}

std::unique_ptr<LayoutRule> MakeLastAxisRule(const LayoutSubject& subject) {
  if (subject.input_count() < 1 || !subject.input(0).has_rank() ||
      subject.input(0).rank() < 1 || !graph::IsNhwc(subject.node().def())) {
    return nullptr;
  }
  return std::make_unique<LastAxisRule>(subject.input(0).rank());
}

}  // namespace optfarm::transforms
