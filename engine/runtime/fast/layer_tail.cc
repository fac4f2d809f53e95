#include "engine/runtime/fast/layer_tail.h"

#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

bool IsSum(const Step* step) {
  return IsFloatNode(step, "Add") || IsFloatNode(step, "AddV2");
}

bool IsChannelsLast(const Step& step) {
  const auto format = graph::GetStringOr(*step.node, "data_format", "NHWC");
  return format.ok() && *format == "NHWC";
}

// A constant with one value for each of the last dimension's `channels`.
bool IsPerChannel(const Tensor* value, int64_t channels) {
  return value != nullptr && value->dtype() == tensorflow::DT_FLOAT &&
         value->rank() >= 1 && value->rank() <= 4 &&
         value->num_elements() == channels &&
         value->dim(value->rank() - 1) == channels;
}

// Takes `step`, which reads `slot`, into the tail. False: it does not belong
// there.
bool Extend(const PlanEditor& plan, const Step& step, int slot,
            int64_t channels, bool with_residual, LayerTail* tail) {
  const bool is_bare = tail->bias == nullptr && tail->residual == kNoSlot;
  if (IsFloatNode(&step, "BiasAdd") || IsFloatNode(&step, "BiasAddV1")) {
    const Tensor* bias = plan.ConstantOf(step.inputs[1]);
    if (!is_bare || step.inputs[0] != slot || !IsChannelsLast(step) ||
        !IsPerChannel(bias, channels) || bias->rank() != 1) {
      return false;
    }
    tail->bias = bias;
    return true;
  }
  if (IsSum(&step)) {
    if (step.inputs[0] == step.inputs[1]) return false;
    const int other = step.inputs[0] == slot ? step.inputs[1] : step.inputs[0];
    const Tensor* value = plan.ConstantOf(other);
    if (is_bare && IsPerChannel(value, channels)) {
      tail->bias = value;
      return true;
    }
    if (value != nullptr || !with_residual || tail->residual != kNoSlot) {
      return false;
    }
    tail->residual = other;
    return true;
  }
  if (IsFloatNode(&step, "Relu")) {
    tail->rectifier = Rectifier::kRelu;
    return true;
  }
  if (IsFloatNode(&step, "Relu6")) {
    tail->rectifier = Rectifier::kRelu6;
    return true;
  }
  return false;
}

}  // namespace

bool IsFloatNode(const Step* step, const char* op) {
  if (step == nullptr || step->node == nullptr || step->op != op ||
      step->kind != StepKind::kKernel) {
    return false;
  }
  const auto type = graph::GetTypeOr(*step->node, "T", tensorflow::DT_INVALID);
  return type.ok() && *type == tensorflow::DT_FLOAT;
}

LayerTail FollowTail(const PlanEditor& plan, int first, int64_t channels,
                     bool with_residual) {
  LayerTail tail;
  tail.members = {first};
  tail.output = plan.step(first)->outputs[0];
  while (tail.rectifier == Rectifier::kNone) {
    const int next = plan.OnlyReaderOf(tail.output);
    if (next == kNoStep || plan.step(next)->node == nullptr) break;
    LayerTail longer = tail;
    if (!Extend(plan, *plan.step(next), tail.output, channels, with_residual,
                &longer)) {
      break;
    }
    longer.members.push_back(next);
    longer.output = plan.step(next)->outputs[0];
    if (!plan.MayFuse(longer.members, {longer.output})) break;
    tail = std::move(longer);
  }
  return tail;
}

}  // namespace optfarm::runtime
