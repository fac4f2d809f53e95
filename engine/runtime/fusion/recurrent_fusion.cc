// Unpack -> in each step ConcatV2 with a state -> MatMul -> bias, where all
// steps have the same weights: what BasicLSTMCell makes of a static loop.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/layer_tail.h"
#include "engine/runtime/fusion/recurrent_products.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// An LSTM's product gives its four gates, each as wide as the state: that says
// which rows of the weights are the state's before a run does.
constexpr int64_t kGates = 4;
// With fewer steps there is too little to multiply at once.
constexpr size_t kFewSteps = 4;

struct RecurrentStep {
  // Of its input.
  int number = 0;
  int weights = kNoSlot;
  int state = kNoSlot;
  // ConcatV2 and what is behind it.
  std::vector<int> members;
  LayerTail tail;
};

bool IsPlainMatMul(const Step& step) {
  const auto a = graph::GetBoolOr(*step.node, "transpose_a", false);
  const auto b = graph::GetBoolOr(*step.node, "transpose_b", false);
  return a.ok() && b.ok() && !*a && !*b;
}

// The step that reads the input in `slot`.
std::optional<RecurrentStep> FindStep(const PlanEditor& plan, int slot) {
  const int join = plan.OnlyReaderOf(slot);
  if (join == kNoStep || !IsFloatNode(plan.step(join), "ConcatV2")) {
    return std::nullopt;
  }
  const Step& joined = *plan.step(join);
  if (joined.inputs.size() != 3 || joined.inputs[0] != slot) {
    return std::nullopt;
  }
  const Tensor* axis = plan.ConstantOf(joined.inputs[2]);
  if (axis == nullptr) return std::nullopt;
  const auto value = ReadInteger(*axis, "axis");
  if (!value.ok() || (*value != 1 && *value != -1)) return std::nullopt;
  const int product = plan.OnlyReaderOf(joined.outputs[0]);
  if (product == kNoStep || !IsFloatNode(plan.step(product), "MatMul")) {
    return std::nullopt;
  }
  const Step& matmul = *plan.step(product);
  if (matmul.inputs[0] != joined.outputs[0] || !IsPlainMatMul(matmul)) {
    return std::nullopt;
  }
  const Tensor* weights = plan.ConstantOf(matmul.inputs[1]);
  if (weights == nullptr || weights->rank() != 2) return std::nullopt;
  RecurrentStep step;
  step.weights = matmul.inputs[1];
  step.state = joined.inputs[1];
  step.tail = FollowTail(plan, product, {weights->dim(1), 2}, false);
  step.members = {join};
  step.members.insert(step.members.end(), step.tail.members.begin(),
                      step.tail.members.end());
  if (!plan.MayFuse(step.members, {step.tail.output})) return std::nullopt;
  return step;
}

bool AreAlike(const PlanEditor& plan, const RecurrentStep& a,
              const RecurrentStep& b) {
  return plan.ConstantOf(a.weights)->raw() ==
             plan.ConstantOf(b.weights)->raw() &&
         a.tail.affine.scale == b.tail.affine.scale &&
         a.tail.affine.bias == b.tail.affine.bias;
}

// The steps of one layer that read what a step takes apart.
std::vector<RecurrentStep> FindSteps(const PlanEditor& plan,
                                     const Step& unpack) {
  std::vector<RecurrentStep> steps;
  for (size_t i = 0; i < unpack.outputs.size(); ++i) {
    std::optional<RecurrentStep> step = FindStep(plan, unpack.outputs[i]);
    if (!step.has_value()) continue;
    step->number = static_cast<int>(i);
    if (!steps.empty() && !AreAlike(plan, *step, steps[0])) continue;
    steps.push_back(*std::move(step));
  }
  return steps;
}

void FuseLayer(const FloatTiles* tiles, int number, PlanEditor* plan) {
  const Step& unpack = *plan->step(number);
  const auto axis = graph::GetIntOr(*unpack.node, "axis", 0);
  if (!axis.ok() || (*axis != 0 && *axis != 1) || unpack.inputs.size() != 1 ||
      !plan->MayFuse({number}, unpack.outputs)) {
    return;
  }
  const std::vector<RecurrentStep> steps = FindSteps(*plan, unpack);
  if (steps.size() < kFewSteps) return;
  const Tensor weights = *plan->ConstantOf(steps[0].weights);
  const FloatPanels panels = {tiles, weights.dim(0), weights.dim(1)};
  const int64_t state_depth = panels.columns / kGates;
  if (weights.dtype() != tensorflow::DT_FLOAT || panels.columns == 0 ||
      panels.columns % (kGates * tiles->width) != 0 ||
      panels.depth <= state_depth) {
    return;
  }
  FusedStep inputs;
  const absl::StatusOr<PackedWeights> packed =
      plan->Pack(weights, LayoutOf(panels, false), &inputs.constant_bytes);
  if (!packed.ok()) return;
  auto layer = std::make_shared<RecurrentLayer>();
  layer->panels = panels;
  layer->packed = *packed;
  layer->input_depth = panels.depth - state_depth;
  layer->scale = PadColumns(panels, steps[0].tail.affine.scale);
  layer->bias = PadColumns(panels, steps[0].tail.affine.bias);
  layer->axis = static_cast<int>(*axis);
  layer->steps = static_cast<int>(unpack.outputs.size());
  const std::vector<int> slots = unpack.outputs;
  // What all inputs give takes the place of the first that is not kept.
  const int products = slots[steps[0].number];
  inputs.inputs = unpack.inputs;
  inputs.outputs = {products};
  size_t next = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (next < steps.size() && steps[next].number == static_cast<int>(i)) {
      ++next;
      continue;
    }
    layer->kept.push_back(static_cast<int>(i));
    inputs.outputs.push_back(slots[i]);
  }
  const auto restore = [shape = weights.shape(),
                        form = *packed]() -> absl::StatusOr<Tensor> {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, form.Value());
    return value.Reshaped(shape);
  };
  for (const RecurrentStep& step : steps) {
    FusedStep fused;
    fused.inputs = {products, step.state};
    fused.outputs = {step.tail.output};
    fused.kernel = MakeRecurrentProduct(
        layer, step.number, step.tail.rectifier,
        plan->TakeChain(step.members, {slots[step.number], step.state},
                        fused.outputs, {{step.weights, Tensor(), restore}}));
    plan->Fuse(step.members, std::move(fused));
  }
  layer->unpack = plan->TakeKernel(number);
  inputs.kernel = MakeInputProducts(layer);
  plan->Fuse({number}, std::move(inputs));
  plan->HoldOther(products);
}

void FuseRecurrentLayers(const CpuFeatures& cpu, PlanEditor* plan) {
  const FloatTiles* tiles =
      SelectFunctions(&MicroKernelFunction::float_gemm, cpu);
  if (tiles == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "Unpack")) {
      FuseLayer(tiles, i, plan);
    }
  }
}

}  // namespace

const Fusion kRecurrentFusion = {
    .name = "recurrent",
    .pattern =
        "Unpack, and for each step ConcatV2 with the state, MatMul, "
        "[BiasAdd]; the weights of all steps are the same",
    .replacement =
        "one matrix multiply for the inputs of all steps, and one "
        "for each state",
    .run = FuseRecurrentLayers,
};

}  // namespace optfarm::runtime
