// The layers of a quantized graph: QuantizedConv2D and QuantizedMatMul with
// constant weights, and behind them what TensorFlow's quantize_nodes and our
// own recipes write. Each becomes one step (int8_layer.h), bit for bit.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/int8_chain_finder.h"
#include "engine/runtime/fusion/int8_layer.h"
#include "engine/runtime/fusion/int8_operands.h"
#include "engine/runtime/fusion/int8_quantize.h"
#include "engine/runtime/fusion/int8_sum.h"

namespace optfarm::runtime {
namespace {

// Constants of one value are the same for all numbers; others do not follow.
constexpr int kScalarsOnly = 0;

class Fuser {
 public:
  Fuser(const CpuFeatures& cpu, PlanEditor* plan)
      : plan_(*plan), kernels_(SelectInt8Kernels(cpu)) {}

  void Run() {
    for (int i = 0; i < plan_.step_count(); ++i) {
      const Step* step = plan_.step(i);
      if (step == nullptr || step->node == nullptr) continue;
      std::optional<Int8Operands> operands =
          ReadInt8Operands(plan_, *step, kernels_);
      if (operands) {
        FuseLayer(i, &*operands);
      } else if (graph::HasRole(step->op, graph::OpRole::kQuantizedAdd)) {
        FuseSum(i);
      } else if (!IsPlainQuantize(*step) || !FuseQuantize(i)) {
        NoteRange(*step);
      }
    }
  }

 private:
  void FuseLayer(int product, Int8Operands* operands);
  void Fuse(const Int8ChainCut& cut, Int8Operands* operands);
  void FuseSum(int sum);
  bool FuseQuantize(int quantize);
  int64_t ChannelsBehind(int quantized) const;

  // What is known of ranges that steps hand on.
  std::optional<Range> RangeOf(int min, int max) const {
    if (const auto constant = ConstantRange(plan_, min, max)) return constant;
    const auto it = ranges_.find({min, max});
    if (it == ranges_.end()) return std::nullopt;
    return it->second;
  }
  void NoteRange(const Step& step);
  void NoteJoinedRange(const Step& join);
  void NoteRangeOf(const Int8LayerPlan& layer, const std::vector<int>& outputs);

  PlanEditor& plan_;
  Int8Kernels kernels_;
  // By slots of min and max.
  absl::flat_hash_map<std::pair<int, int>, Range> ranges_;
};

// Only what saves a layer from making its stages at each run: a layer looks
// whether the range that comes is the expected one.
void Fuser::NoteRange(const Step& step) {
  const auto hand_on = [&](size_t from) {
    if (step.inputs.size() < from + 2 || step.outputs.size() != 3) return;
    const auto range = RangeOf(step.inputs[from], step.inputs[from + 1]);
    if (range) ranges_[{step.outputs[1], step.outputs[2]}] = *range;
  };
  const graph::OpRow& row = graph::RowOf(step.op);
  if (row.keeps_range) {
    hand_on(row.range_input);
  } else if (row.role == graph::OpRole::kRequantize) {
    hand_on(row.output_range_input);
  } else if (row.role == graph::OpRole::kQuantizedConcat) {
    NoteJoinedRange(step);
  } else if (row.role == graph::OpRole::kQuantize && step.inputs.size() == 3 &&
             step.outputs.size() == 3) {
    const auto range = RangeOf(step.inputs[1], step.inputs[2]);
    if (range) {
      ranges_[{step.outputs[1], step.outputs[2]}] = WidenedForQuantize(*range);
    }
  }
}

// All ranges and zero.
void Fuser::NoteJoinedRange(const Step& join) {
  const size_t count = (join.inputs.size() - 1) / 3;
  if (join.inputs.size() < 4 || join.outputs.size() != 3) return;
  Range all = {0.0f, std::numeric_limits<float>::lowest()};
  for (size_t i = 1 + count; i < 1 + 2 * count; ++i) {
    const auto range = RangeOf(join.inputs[i], join.inputs[i + count]);
    if (!range) return;
    all.min = std::min(all.min, range->min);
    all.max = std::max(all.max, range->max);
  }
  ranges_[{join.outputs[1], join.outputs[2]}] = all;
}

void Fuser::NoteRangeOf(const Int8LayerPlan& layer,
                        const std::vector<int>& outputs) {
  if (!layer.input_range || outputs.size() != 3 ||
      layer.chain.needs_extremes()) {
    return;
  }
  Int8Stages stages;
  if (layer.chain.Prepare(AccumulatorScaleOf(layer, *layer.input_range), false,
                          nullptr, *kernels_.stages, &stages)) {
    ranges_[{outputs[1], outputs[2]}] = stages.range;
  }
}

void Fuser::FuseLayer(int product, Int8Operands* operands) {
  for (const Int8ChainCut& cut : FindInt8Chains(
           plan_,
           {operands->plan.chain, {product}, plan_.step(product)->outputs},
           operands->rank)) {
    if (plan_.MayFuse(cut.members, cut.outputs)) return Fuse(cut, operands);
  }
}

void Fuser::Fuse(const Int8ChainCut& cut, Int8Operands* operands) {
  const Tensor& filter = *plan_.ConstantOf(operands->filter_slot);
  FusedStep fused;
  if (!PackInt8Filter(filter, &plan_, operands, &fused.constant_bytes).ok()) {
    return;
  }
  Int8LayerPlan& layer = operands->plan;
  layer.input_range = RangeOf(operands->inputs[1], operands->inputs[2]);
  layer.chain = cut.chain;
  NoteRangeOf(layer, cut.outputs);
  fused.inputs = operands->inputs;
  fused.outputs = cut.outputs;
  StepChain steps = plan_.TakeChain(cut.members, fused.inputs, fused.outputs,
                                    {RestoredInt8Filter(filter, *operands)});
  fused.kernel = MakeInt8Layer(std::move(layer), std::move(steps));
  plan_.Fuse(cut.members, std::move(fused));
}

void Fuser::FuseSum(int sum) {
  const std::vector<int> inputs = plan_.step(sum)->inputs;
  if (inputs.size() != 6 || inputs[0] == inputs[1] ||
      plan_.step(sum)->outputs.size() != 3) {
    return;
  }
  const auto a = RangeOf(inputs[2], inputs[3]);
  const auto b = RangeOf(inputs[4], inputs[5]);
  // A sum with a constant is for a layer, or for the kernel.
  if (plan_.ConstantOf(inputs[0]) != nullptr ||
      plan_.ConstantOf(inputs[1]) != nullptr) {
    return;
  }
  for (const Int8ChainCut& cut : FindInt8Chains(
           plan_,
           {Int8Chain(kInt8SumChannels), {sum}, plan_.step(sum)->outputs},
           kScalarsOnly)) {
    if (!plan_.MayFuse(cut.members, cut.outputs)) continue;
    Int8Stages stages;
    if (a && b && cut.outputs.size() == 3 && !cut.chain.needs_extremes() &&
        cut.chain.Prepare({RangeOfSum(*a, *b), {}}, false, nullptr,
                          *kernels_.stages, &stages)) {
      ranges_[{cut.outputs[1], cut.outputs[2]}] = stages.range;
    }
    FusedStep fused;
    fused.inputs = inputs;
    fused.outputs = cut.outputs;
    StepChain steps = plan_.TakeChain(cut.members, inputs, cut.outputs);
    std::optional<Int8SumRanges> expected;
    if (a && b) expected = Int8SumRanges{*a, *b};
    fused.kernel = MakeInt8Sum(cut.chain, expected, kernels_, std::move(steps));
    return plan_.Fuse(cut.members, std::move(fused));
  }
}

// The channels that the op behind some quantized values knows of; 0 for none.
int64_t Fuser::ChannelsBehind(int quantized) const {
  for (int reader : plan_.ReadersOf(quantized)) {
    const Step& step = *plan_.step(reader);
    const graph::OpRole role = graph::RowOf(step.op).role;
    if (step.inputs.size() != 6 || (role != graph::OpRole::kQuantizedMultiply &&
                                    role != graph::OpRole::kQuantizedAdd &&
                                    role != graph::OpRole::kQuantizedBiasAdd)) {
      continue;
    }
    for (int input : {0, 1}) {
      const Tensor* operand = plan_.ConstantOf(step.inputs[input]);
      if (operand != nullptr && operand->num_elements() > 1) {
        return operand->num_elements();
      }
    }
  }
  return 0;
}

bool Fuser::FuseQuantize(int quantize) {
  const Step& step = *plan_.step(quantize);
  const auto range = ConstantRange(plan_, step.inputs[1], step.inputs[2]);
  std::vector<int> members = {quantize};
  if (!range) {
    const auto found = FindRangeSteps(plan_, step);
    if (!found) return false;
    members = {found->list, found->min, found->max, quantize};
    std::sort(members.begin(), members.end());
  }
  const int64_t channels = ChannelsBehind(step.outputs[0]);
  Int8Chain chain(channels > 0 ? channels : kInt8SumChannels,
                  Int8State::kFloat);
  chain.AddQuantize(range);
  // Vectors broadcast over a tensor of any rank.
  const int rank = channels > 0 ? 1 : kScalarsOnly;
  const std::vector<int> inputs = {step.inputs[0]};
  for (const Int8ChainCut& cut :
       FindInt8Chains(plan_, {chain, members, step.outputs}, rank)) {
    if (!plan_.MayFuse(cut.members, cut.outputs)) continue;
    Int8Stages stages;
    if (cut.outputs.size() == 3 && !cut.chain.needs_extremes() &&
        cut.chain.Prepare({}, false, nullptr, *kernels_.stages, &stages)) {
      ranges_[{cut.outputs[1], cut.outputs[2]}] = stages.range;
    }
    FusedStep fused;
    fused.inputs = inputs;
    fused.outputs = cut.outputs;
    StepChain steps = plan_.TakeChain(cut.members, inputs, cut.outputs);
    fused.kernel =
        MakeInt8Quantize(cut.chain, channels > 0, kernels_, std::move(steps));
    plan_.Fuse(cut.members, std::move(fused));
    return true;
  }
  return false;
}

void FuseInt8Layers(const CpuFeatures& cpu, PlanEditor* plan) {
  Fuser(cpu, plan).Run();
}

}  // namespace

const Fusion kInt8Fusion = {
    .name = "int8",
    .pattern =
        "QuantizedConv2D, QuantizedMatMul and the ops for whole layers, "
        "QuantizedAdd, QuantizeV2, with the Requantize, bias, "
        "activation and Dequantize behind them",
    .replacement = "an 8-bit layer whose output pipeline does the rest",
    .run = FuseInt8Layers,
};

}  // namespace optfarm::runtime
