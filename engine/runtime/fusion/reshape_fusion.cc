// Reshapes to sizes that are put together at run time from the shapes of other
// tensors: what models with open sizes do before and after most products. The
// handful of steps that compute the sizes becomes part of the reshape.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {
namespace {

// A tensor whose shape is read stays in memory until the reshape: one that was
// made more steps before is not worth it.
constexpr int kFarthest = 64;
// Nodes of sizes that are looked through, one into the other, and sizes and
// steps in all: what no reshape needs, but a graph could ask for.
constexpr int kDeepest = 8;
constexpr size_t kMostSizes = 32;

// A run of the sizes that a tensor is reshaped to.
struct SizePiece {
  enum class Kind { kConstant, kDims, kOneDim, kValue };
  Kind kind = Kind::kConstant;
  std::vector<int64_t> constant;
  // Which of the kernel's inputs has the shape, or holds the sizes.
  int input = 0;
  // Of a shape, dimensions [begin, end), or `begin` alone; counted from the
  // last where negative.
  int64_t begin = 0;
  std::optional<int64_t> end;
};

// Dimensions as StridedSlice takes them from a shape.
absl::Status AppendDims(const SizePiece& piece, const Shape& shape,
                        std::vector<int64_t>* sizes) {
  if (piece.kind == SizePiece::Kind::kOneDim) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis,
                             NormalizeAxis(piece.begin, shape.rank()));
    sizes->push_back(shape.dim(axis));
    return absl::OkStatus();
  }
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + shape.rank() : at, 0,
                               shape.rank());
  };
  const int64_t end = piece.end.has_value() ? place(*piece.end) : shape.rank();
  for (int64_t i = place(piece.begin); i < end; ++i) {
    sizes->push_back(shape.dim(static_cast<int>(i)));
  }
  return absl::OkStatus();
}

// Input 0 is reshaped; the pieces say what the others are.
class ReshapeKernel final : public Kernel {
 public:
  ReshapeKernel(std::vector<SizePiece> pieces, std::unique_ptr<Kernel> reshape)
      : pieces_(std::move(pieces)), reshape_(std::move(reshape)) {}

  absl::Status Compute(KernelContext* context) const override {
    std::vector<int64_t> sizes;
    sizes.reserve(8);
    for (const SizePiece& piece : pieces_) {
      if (piece.kind == SizePiece::Kind::kConstant) {
        sizes.insert(sizes.end(), piece.constant.begin(), piece.constant.end());
        continue;
      }
      const Tensor& input = context->input(piece.input);
      if (piece.kind != SizePiece::Kind::kValue) {
        OPTFARM_RETURN_IF_ERROR(AppendDims(piece, input.shape(), &sizes));
        continue;
      }
      OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                               ReadIntegers(input, "shape"));
      sizes.insert(sizes.end(), values.begin(), values.end());
    }
    return Reshape(sizes, context);
  }

 private:
  absl::Status Reshape(const std::vector<int64_t>& sizes,
                       KernelContext* context) const {
    const Tensor& tensor = context->input(0);
    if (std::find(sizes.begin(), sizes.end(), -1) == sizes.end()) {
      const auto shape = Shape::FromDims(sizes);
      if (shape.ok() && shape->num_elements() == tensor.num_elements()) {
        context->SetOutput(0, tensor.Reshaped(*shape));
        return absl::OkStatus();
      }
    }
    // One size is open, or they do not fit: the step itself knows.
    Tensor inputs[] = {tensor,
                       Tensor::FromValues<int64_t>(
                           Shape({static_cast<int64_t>(sizes.size())}), sizes)};
    Tensor outputs[1];
    KernelContext own =
        context->WithTensors(absl::MakeSpan(inputs), absl::MakeSpan(outputs));
    OPTFARM_RETURN_IF_ERROR(reshape_->Compute(&own));
    context->SetOutput(0, std::move(outputs[0]));
    return absl::OkStatus();
  }

  const std::vector<SizePiece> pieces_;
  const std::unique_ptr<Kernel> reshape_;
};

bool IsShape(const Step& step) {
  return graph::HasRole(step.op, graph::OpRole::kShape) &&
         step.inputs.size() == 1;
}

// Reads how the sizes of one reshape come about.
class SizeReader {
 public:
  SizeReader(const PlanEditor& plan, int reshape)
      : plan_(plan),
        reshape_(reshape),
        inputs_({plan.step(reshape)->inputs[0]}) {}

  // Appends the sizes in `slot`, a vector or a scalar.
  void Read(int slot, int depth = 0) {
    if (IsTooLong()) return;
    if (const Tensor* value = plan_.ConstantOf(slot)) {
      if (value->num_elements() > static_cast<int64_t>(kMostSizes)) {
        return ReadValue(slot);
      }
      auto sizes = ReadIntegers(*value, "shape");
      if (!sizes.ok()) return ReadValue(slot);
      SizePiece& piece = pieces_.emplace_back();
      piece.constant = *std::move(sizes);
      return;
    }
    const int number = plan_.ProducerOf(slot);
    const Step* step = number == kNoStep ? nullptr : plan_.step(number);
    if (step == nullptr || depth == kDeepest || !IsReadable(*step) ||
        !ReadStep(*step, depth)) {
      return ReadValue(slot);
    }
    looked_through_.push_back(number);
  }

  // Whether there are more than anybody needs, and some were left out.
  bool IsTooLong() const {
    return pieces_.size() > kMostSizes || looked_through_.size() > kMostSizes;
  }
  std::vector<SizePiece>& pieces() { return pieces_; }
  const std::vector<int>& inputs() const { return inputs_; }
  // Steps whose values the pieces do without.
  const std::vector<int>& looked_through() const { return looked_through_; }

 private:
  void ReadValue(int slot) {
    SizePiece& piece = pieces_.emplace_back();
    piece.kind = SizePiece::Kind::kValue;
    piece.input = InputOf(slot);
  }

  int InputOf(int slot) {
    const auto found = std::find(inputs_.begin(), inputs_.end(), slot);
    if (found == inputs_.end()) {
      inputs_.push_back(slot);
      return static_cast<int>(inputs_.size()) - 1;
    }
    return static_cast<int>(found - inputs_.begin());
  }

  std::optional<int64_t> ConstantInteger(int slot) const {
    const Tensor* value = plan_.ConstantOf(slot);
    if (value == nullptr || value->num_elements() != 1) return std::nullopt;
    const auto values = value->AsInt64s();
    if (!values.ok()) return std::nullopt;
    return values->front();
  }

  // What a step of another loop reads may be gone when the reshape runs.
  bool IsReadable(const Step& step) const {
    return step.node != nullptr && step.controls.empty() &&
           plan_.LoopOf(step.outputs[0]) ==
               plan_.LoopOf(plan_.step(reshape_)->outputs[0]);
  }

  // False, and nothing appended, for a step that is not known.
  bool ReadStep(const Step& step, int depth) {
    const std::vector<int>& in = step.inputs;
    const graph::OpRow& row = graph::RowOf(step.op);
    if (row.role == graph::OpRole::kConcat && !row.has_axis_first &&
        ConstantInteger(in.back()) == 0) {
      for (size_t i = 0; i + 1 < in.size(); ++i) Read(in[i], depth + 1);
      return true;
    }
    if (step.op == "Pack" &&
        graph::GetIntOr(*step.node, "axis", 0).value_or(1) == 0) {
      for (int slot : in) Read(slot, depth + 1);
      return true;
    }
    if (step.op == "ExpandDims" && in.size() == 2 &&
        ConstantInteger(in[1]) == 0) {
      Read(in[0], depth + 1);
      return true;
    }
    if (IsShape(step)) return ReadShape(step, Dims(0, std::nullopt));
    if (step.op == "StridedSlice") return ReadSlice(step);
    if (step.op == "GatherV2" && in.size() == 3) {
      const auto at = ConstantInteger(in[1]);
      return ConstantInteger(in[2]) == 0 && at >= 0 &&
             ReadShapeIn(in[0], OneDim(*at));
    }
    return false;
  }

  bool ReadSlice(const Step& step) {
    const std::vector<int>& in = step.inputs;
    if (in.size() != 4 || ConstantInteger(in[3]) != 1) return false;
    for (const char* name : {"begin_mask", "end_mask", "shrink_axis_mask",
                             "ellipsis_mask", "new_axis_mask"}) {
      // Bits of dimensions that a shape does not have are left to the step.
      const int64_t mask = MaskOf(step, name);
      if (mask != 0 && mask != 1) return false;
    }
    if (MaskOf(step, "ellipsis_mask") != 0 ||
        MaskOf(step, "new_axis_mask") != 0) {
      return false;
    }
    const auto begin = ConstantInteger(in[1]), end = ConstantInteger(in[2]);
    if (!begin.has_value() || !end.has_value()) return false;
    const bool has_begin = MaskOf(step, "begin_mask") == 0;
    if (MaskOf(step, "shrink_axis_mask") == 1) {
      return has_begin && ReadShapeIn(in[0], OneDim(*begin));
    }
    return ReadShapeIn(
        in[0], Dims(has_begin ? *begin : 0,
                    MaskOf(step, "end_mask") == 0 ? end : std::nullopt));
  }

  // -1 where it is no number.
  static int64_t MaskOf(const Step& step, const char* name) {
    return graph::GetIntOr(*step.node, name, 0).value_or(-1);
  }

  static SizePiece Dims(int64_t begin, std::optional<int64_t> end) {
    SizePiece piece;
    piece.kind = SizePiece::Kind::kDims;
    piece.begin = begin;
    piece.end = end;
    return piece;
  }
  static SizePiece OneDim(int64_t axis) {
    SizePiece piece = Dims(axis, std::nullopt);
    piece.kind = SizePiece::Kind::kOneDim;
    return piece;
  }

  // Adds the part of the shape that `slot` holds.
  bool ReadShapeIn(int slot, SizePiece part) {
    const int number = plan_.ProducerOf(slot);
    const Step* step = number == kNoStep ? nullptr : plan_.step(number);
    if (step == nullptr || !IsShape(*step) || !IsReadable(*step)) return false;
    if (!ReadShape(*step, std::move(part))) return false;
    looked_through_.push_back(number);
    return true;
  }

  bool ReadShape(const Step& step, SizePiece piece) {
    const int slot = step.inputs[0];
    const int maker = plan_.ProducerOf(slot);
    if (maker != kNoStep && reshape_ - maker > kFarthest) return false;
    piece.input = InputOf(slot);
    pieces_.push_back(std::move(piece));
    return true;
  }

  const PlanEditor& plan_;
  const int reshape_;
  std::vector<SizePiece> pieces_;
  std::vector<int> inputs_;
  std::vector<int> looked_through_;
};

// Appends the steps that the reshape does without.
void ReplaceReshape(int number, PlanEditor* plan, std::set<int>* unread) {
  const Step& step = *plan->step(number);
  if (step.inputs.size() != 2 || !plan->MayFuse({number}, step.outputs)) return;
  SizeReader reader(*plan, number);
  reader.Read(step.inputs[1]);
  if (reader.looked_through().empty() || reader.IsTooLong()) return;
  unread->insert(reader.looked_through().begin(),
                 reader.looked_through().end());
  FusedStep fused;
  fused.inputs = reader.inputs();
  fused.outputs = step.outputs;
  fused.kernel = std::make_unique<ReshapeKernel>(std::move(reader.pieces()),
                                                 plan->TakeKernel(number));
  plan->Fuse({number}, std::move(fused));
}

void FuseReshapes(const CpuFeatures&, PlanEditor* plan) {
  std::set<int> unread;
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    if (step != nullptr && step->node != nullptr &&
        graph::IsReshape(step->op)) {
      ReplaceReshape(i, plan, &unread);
    }
  }
  // A reader before what it reads.
  for (auto it = unread.rbegin(); it != unread.rend(); ++it) {
    if (plan->MayDrop(*it)) plan->Drop(*it);
  }
}

}  // namespace

const Fusion kReshapeFusion = {
    .name = "reshape",
    .pattern =
        "Reshape to sizes that Shape, StridedSlice, GatherV2, "
        "ExpandDims, Pack and ConcatV2 put together",
    .replacement = "a reshape that reads the sizes from the shapes",
    .run = FuseReshapes,
};

}  // namespace optfarm::runtime
