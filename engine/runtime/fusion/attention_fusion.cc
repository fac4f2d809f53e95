// Attention as models are exported: a product of queries and keys, its softmax,
// and a product of that with the values.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/fusion/attention.h"
#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// Steps between the first product and the softmax.
constexpr int kMostScoreSteps = 6;

bool IsMatrixProduct(const Step* step) {
  return IsFloatNode(step, "BatchMatMulV2") || IsFloatNode(step, "BatchMatMul");
}

// Whether factors of this size can be applied elsewhere, a division as a
// multiplication: the scores stay far from the ends of the range, and only the
// last bit of a score may differ.
bool IsModerate(float factor) {
  const float size = std::abs(factor);
  return size >= 1e-6f && size <= 1e6f;
}

bool FlagOf(const Step& step, const char* name) {
  return graph::GetBoolOr(*step.node, name, false).value_or(true);
}

class AttentionFinder {
 public:
  AttentionFinder(const AttentionFunctions& run, PlanEditor* plan)
      : plan_(plan) {
    layer_.run = run;
  }

  // Replaces the attention around the softmax in step `number`, if it is one.
  void Replace(int number) {
    const Step& softmax = *plan_->step(number);
    const int behind = plan_->OnlyReaderOf(softmax.outputs[0]);
    const Step* product = StepAt(behind);
    if (!IsMatrixProduct(product) || product->inputs[0] != softmax.outputs[0] ||
        product->inputs[1] == softmax.outputs[0] || FlagOf(*product, "adj_x") ||
        FlagOf(*product, "adj_y")) {
      return;
    }
    members_ = {number, behind};
    const std::optional<int> first = WalkScores(softmax.inputs[0], number);
    if (!first.has_value()) return;
    const Step& scores = *plan_->step(*first);
    if (FlagOf(scores, "adj_x")) return;
    layer_.transposes_keys = FlagOf(scores, "adj_y");
    const int parts[] = {Part(0, scores.inputs[0], *first),
                         Part(1, scores.inputs[1], *first),
                         Part(2, product->inputs[1], behind)};
    inputs_.insert(inputs_.begin(), parts, parts + 3);
    Fuse(FollowOutput(*product));
  }

 private:
  const Step* StepAt(int number) const {
    return number == kNoStep ? nullptr : plan_->step(number);
  }

  std::optional<float> ConstantScalar(int slot) const {
    const Tensor* value = plan_->ConstantOf(slot);
    if (value == nullptr || value->dtype() != tensorflow::DT_FLOAT ||
        value->num_elements() != 1 || value->rank() > 1) {
      return std::nullopt;
    }
    return *value->data<float>();
  }

  // The order of a transpose with a constant one.
  std::optional<std::vector<int>> OrderOf(const Step* step) const {
    if (!IsFloatNode(step, "Transpose") || step->inputs.size() != 2) {
      return std::nullopt;
    }
    const Tensor* constant = plan_->ConstantOf(step->inputs[1]);
    if (constant == nullptr) return std::nullopt;
    const auto values = constant->AsInt64s();
    if (!values.ok() || values->size() > graph::kMaxRank) return std::nullopt;
    std::vector<int> order;
    for (size_t i = 0; i < values->size(); ++i) {
      // A wrong one is left to the step.
      if (std::count(values->begin(), values->end(), static_cast<int64_t>(i)) !=
          1) {
        return std::nullopt;
      }
      order.push_back(static_cast<int>((*values)[i]));
    }
    return order;
  }

  // From the softmax's input back to the step that multiplies queries by keys;
  // what is between becomes score steps.
  std::optional<int> WalkScores(int slot, int reader) {
    const int number = plan_->ProducerOf(slot);
    const Step* step = StepAt(number);
    if (step == nullptr || step->node == nullptr ||
        plan_->OnlyReaderOf(slot) != reader ||
        members_.size() > kMostScoreSteps) {
      return std::nullopt;
    }
    if (IsMatrixProduct(step)) {
      members_.push_back(number);
      std::reverse(layer_.steps.begin(), layer_.steps.end());
      return number;
    }
    ScoreStep read;
    int rest = kNoSlot;
    if (!ReadScoreStep(*step, &read, &rest)) return std::nullopt;
    members_.push_back(number);
    layer_.steps.push_back(read);
    return WalkScores(rest, number);
  }

  // A product with a constant number, or a quotient by one; `rest` becomes the
  // slot of the other operand.
  bool ReadFactor(const Step& step, ScoreStep* read, int* rest) const {
    const graph::OpRole role = graph::RowOf(step.op).role;
    const bool divides = role == graph::OpRole::kDivide;
    if (!ComputesFloats(step) ||
        (!divides && role != graph::OpRole::kMultiply)) {
      return false;
    }
    for (int i : {0, 1}) {
      const std::optional<float> factor = ConstantScalar(step.inputs[1 - i]);
      if (!factor.has_value() || (divides && i == 1)) continue;
      read->kind = ScoreStep::Kind::kScale;
      read->value = divides ? 1.0f / *factor : *factor;
      if (!IsModerate(*factor) || !IsModerate(read->value)) return false;
      *rest = step.inputs[i];
      return true;
    }
    return false;
  }

  // `rest` becomes the slot with the scores before the step.
  bool ReadScoreStep(const Step& step, ScoreStep* read, int* rest) {
    const std::vector<int>& in = step.inputs;
    if (!ComputesFloats(step)) return false;
    if (ReadFactor(step, read, rest)) return true;
    const graph::OpRole role = graph::RowOf(step.op).role;
    if (role == graph::OpRole::kAdd) {
      const int i = LeadsToProduct(in[0]) ? 0 : 1;
      read->kind = ScoreStep::Kind::kAdd;
      read->input = AddInput(in[1 - i]);
      *rest = in[i];
      return in[0] != in[1];
    }
    if (IsFloatNode(&step, "SelectV2")) {
      for (int i : {1, 2}) {
        const std::optional<float> value = ConstantScalar(in[3 - i]);
        if (!value.has_value()) continue;
        read->kind = ScoreStep::Kind::kSelect;
        read->value = *value;
        read->keeps = i == 1;
        read->input = AddInput(in[0]);
        *rest = in[i];
        return true;
      }
    }
    return false;
  }

  // Of the inputs behind the three parts, from which the kernel's number.
  int AddInput(int slot) {
    inputs_.push_back(slot);
    return static_cast<int>(inputs_.size()) + 2;
  }

  // Whether a value comes from a product, through steps that keep its shape.
  bool LeadsToProduct(int slot) const {
    for (int i = 0; i < kMostScoreSteps; ++i) {
      const Step* step = StepAt(plan_->ProducerOf(slot));
      if (step == nullptr || step->inputs.empty()) return false;
      if (IsMatrixProduct(step)) return true;
      const bool is_select = step->op == "SelectV2";
      slot = step->inputs[is_select ? 1 : 0];
      if (is_select && plan_->ConstantOf(slot) != nullptr) {
        slot = step->inputs.back();
      }
    }
    return false;
  }

  // The slot that a part is read from: before its transpose, where there is
  // one. Queries and keys may be multiplied by numbers behind it.
  int Part(int part, int slot, int reader) {
    while (part < 2) {
      const int number = plan_->ProducerOf(slot);
      const Step* step = StepAt(number);
      ScoreStep factor;
      int rest = kNoSlot;
      if (step == nullptr || step->node == nullptr ||
          plan_->OnlyReaderOf(slot) != reader ||
          !ReadFactor(*step, &factor, &rest)) {
        break;
      }
      layer_.scale *= factor.value;
      members_.push_back(number);
      slot = rest;
      reader = number;
    }
    const int number = plan_->ProducerOf(slot);
    const auto order = OrderOf(StepAt(number));
    if (!order.has_value() || plan_->OnlyReaderOf(slot) != reader) return slot;
    layer_.orders[part] = *order;
    members_.push_back(number);
    return plan_->step(number)->inputs[0];
  }

  // The slot that the kernel writes.
  int FollowOutput(const Step& product) {
    const int slot = product.outputs[0];
    const int number = plan_->OnlyReaderOf(slot);
    const Step* step = StepAt(number);
    const auto order = OrderOf(step);
    // Rows are written in one piece.
    if (!order.has_value() || step->inputs[0] != slot || order->size() < 2 ||
        order->back() != static_cast<int>(order->size()) - 1) {
      return slot;
    }
    layer_.output_order = *order;
    members_.push_back(number);
    return step->outputs[0];
  }

  void Fuse(int output) {
    while (!layer_.steps.empty() &&
           layer_.steps.front().kind == ScoreStep::Kind::kScale) {
      layer_.scale *= layer_.steps.front().value;
      layer_.steps.erase(layer_.steps.begin());
    }
    std::sort(members_.begin(), members_.end());
    FusedStep fused;
    fused.inputs = inputs_;
    fused.outputs = {output};
    if (!plan_->MayFuse(members_, fused.outputs)) return;
    layer_.chain = plan_->TakeChain(members_, fused.inputs, fused.outputs);
    fused.kernel = MakeAttentionKernel(std::move(layer_));
    plan_->Fuse(members_, std::move(fused));
  }

  PlanEditor* const plan_;
  AttentionLayer layer_;
  std::vector<int> members_;
  std::vector<int> inputs_;
};

void FuseAttention(const CpuFeatures& cpu, PlanEditor* plan) {
  const AttentionFunctions run = {
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu),
      SelectFunctions(&MicroKernelFunction::softmax, cpu),
      SelectFunctions(&MicroKernelFunction::element_functions, cpu)};
  if (run.tiles == nullptr || run.softmax == nullptr ||
      run.elements == nullptr) {
    return;
  }
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    if (IsFloatNode(step, "Softmax") && step->inputs.size() == 1) {
      AttentionFinder(run, plan).Replace(i);
    }
  }
}

}  // namespace

const Fusion kAttentionFusion = {
    .name = "attention",
    .pattern =
        "[Transpose of each part; Mul, RealDiv of queries and keys] "
        "BatchMatMulV2 [Mul, RealDiv, Add, SelectV2] Softmax BatchMatMulV2 "
        "[Transpose]",
    .replacement =
        "attention that computes some rows of scores at a time, and reads and "
        "writes heads in place",
    .run = FuseAttention,
};

}  // namespace optfarm::runtime
