#include "engine/runtime/fast/int8_fusion.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/fast/int8_chain_finder.h"
#include "engine/runtime/fast/int8_layer.h"
#include "engine/runtime/kernels/quantized_inputs.h"

namespace optfarm::runtime {
namespace {

class Fuser {
 public:
  Fuser(const FusionContext& context, PlanEditor* plan)
      : context_(context),
        plan_(*plan),
        functions_(Int8FunctionsFor(context.cpu())) {}

  void Run() {
    for (int i = 0; i < plan_.step_count(); ++i) {
      const Step* step = plan_.step(i);
      if (step == nullptr || step->node == nullptr) continue;
      if (step->op == "QuantizedConv2D" || step->op == "QuantizedMatMul") {
        FuseLayer(i);
      } else {
        NoteRange(*step);
      }
    }
  }

 private:
  // The layer without its weights, chain and input range.
  struct Shape2d {
    Int8LayerPlan plan;
    int64_t depth = 0;
    int64_t columns = 0;
    bool is_transposed = false;
  };

  void FuseLayer(int product);
  // False for what is left to the reference kernels.
  bool Describe(const Step& step, const Tensor& filter, Shape2d* layer) const;
  absl::Status Pack(const Tensor& filter, Shape2d* layer) const;

  // What is known of ranges that steps hand on.
  std::optional<Range> RangeOf(int min, int max) const {
    if (const auto constant = ConstantRange(plan_, min, max)) return constant;
    const auto it = ranges_.find({min, max});
    if (it == ranges_.end()) return std::nullopt;
    return it->second;
  }
  void NoteRange(const Step& step);

  const FusionContext& context_;
  PlanEditor& plan_;
  Int8Functions functions_;
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
  if (step.op == "QuantizedMaxPool" || step.op == "QuantizedAvgPool" ||
      step.op == "QuantizedRelu" || step.op == "QuantizedRelu6") {
    hand_on(1);
  } else if (step.op == "QuantizedReshape" ||
             step.op == "QuantizedResizeBilinear") {
    hand_on(2);
  } else if (step.op == "Requantize") {
    hand_on(3);
  } else if (step.op == "QuantizeV2" && step.inputs.size() == 3 &&
             step.outputs.size() == 3) {
    const auto range = RangeOf(step.inputs[1], step.inputs[2]);
    if (range) {
      ranges_[{step.outputs[1], step.outputs[2]}] = WidenedForQuantize(*range);
    }
  }
}

bool Fuser::Describe(const Step& step, const Tensor& filter,
                     Shape2d* layer) const {
  layer->plan.functions = functions_;
  if (filter.dtype() != tensorflow::DT_QUINT8 || filter.num_elements() == 0) {
    return false;
  }
  if (step.op == "QuantizedConv2D") {
    const auto window = ReadWindowAttrs(*step.node);
    if (filter.rank() != 4 || !window.ok() || window->is_nchw) {
      return false;
    }
    layer->plan.window = *window;
    layer->plan.size_y = filter.dim(0);
    layer->plan.size_x = filter.dim(1);
    layer->plan.channels = filter.dim(2);
    layer->columns = filter.dim(3);
  } else {
    const auto transpose_a = graph::GetBoolOr(*step.node, "transpose_a", false);
    const auto transpose_b = graph::GetBoolOr(*step.node, "transpose_b", false);
    if (filter.rank() != 2 || !transpose_a.ok() || *transpose_a ||
        !transpose_b.ok()) {
      return false;
    }
    layer->is_transposed = *transpose_b;
    layer->plan.channels = filter.dim(*transpose_b ? 1 : 0);
    layer->columns = filter.dim(*transpose_b ? 0 : 1);
  }
  layer->depth = filter.num_elements() / layer->columns;
  return true;
}

absl::Status Fuser::Pack(const Tensor& filter, Shape2d* layer) const {
  const bool is_transposed = layer->is_transposed;
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor packed,
      context_.Pack(filter,
                    absl::StrCat("int8 ", layer->depth, "x", layer->columns,
                                 is_transposed ? " transposed" : ""),
                    [&] {
                      return Int8Weights::Pack(filter, layer->depth,
                                               layer->columns, is_transposed);
                    }));
  layer->plan.weights =
      Int8Weights(std::move(packed), layer->depth, layer->columns);
  return absl::OkStatus();
}

void Fuser::FuseLayer(int product) {
  const Step& step = *plan_.step(product);
  if (step.inputs.size() != 6 || step.outputs.size() != 3) return;
  const std::vector<int> inputs = {step.inputs[0], step.inputs[2],
                                   step.inputs[3]};
  const int filter_slot = step.inputs[1];
  const Tensor* filter = plan_.ConstantOf(filter_slot);
  const auto weights_range =
      ConstantRange(plan_, step.inputs[4], step.inputs[5]);
  if (filter == nullptr || !weights_range) return;
  const auto zero = ZeroCode(*weights_range);
  Shape2d layer;
  if (!zero.ok() || !Describe(step, *filter, &layer)) return;
  for (Int8ChainCut& cut : FindInt8Chains(plan_, product, layer.columns)) {
    if (!plan_.MayFuse(cut.members, cut.outputs)) continue;
    if (!Pack(*filter, &layer).ok()) return;
    Int8LayerPlan& made = layer.plan;
    made.weights_range = *weights_range;
    made.weights_zero = *zero;
    made.input_range = RangeOf(inputs[1], inputs[2]);
    if (made.input_range && cut.outputs.size() == 3 &&
        !cut.chain.needs_extremes()) {
      Int8Stages stages;
      const Range wide =
          RangeOfProduct<uint8_t, uint8_t>(*made.input_range, *weights_range);
      if (cut.chain.Prepare(wide, false, nullptr, *functions_.stages,
                            &stages)) {
        ranges_[{cut.outputs[1], cut.outputs[2]}] = stages.range;
      }
    }
    made.chain = std::move(cut.chain);
    const Int8Weights weights = made.weights;
    const Shape shape = filter->shape();
    const bool is_transposed = layer.is_transposed;
    std::vector<ChainConstant> restored(1);
    restored[0].slot = filter_slot;
    restored[0].restore = [weights, shape, is_transposed] {
      return weights.Unpack(shape, is_transposed);
    };
    FusedStep fused;
    fused.inputs = inputs;
    fused.outputs = cut.outputs;
    fused.constant_bytes = weights.TotalBytes();
    StepChain steps =
        plan_.TakeChain(cut.members, inputs, cut.outputs, std::move(restored));
    fused.kernel = MakeInt8Layer(std::move(made), std::move(steps));
    plan_.Fuse(cut.members, std::move(fused));
    return;
  }
}

}  // namespace

void FuseInt8Layers(const FusionContext& context, PlanEditor* plan) {
  Fuser(context, plan).Run();
}

}  // namespace optfarm::runtime
