#include "engine/runtime/fusion/layer_tail.h"

#include <optional>
#include <utility>

#include "engine/graph/ops/op_table.h"

namespace optfarm::runtime {
namespace {

// The other value of a sum with the value in `slot`; kNoSlot for another step.
int OtherOfSum(const PlanEditor& plan, const Step& step, int slot) {
  const bool is_sum = graph::IsSum(step.op) && ComputesFloats(step);
  if (!is_sum || step.inputs[0] == step.inputs[1]) return kNoSlot;
  const int other = step.inputs[step.inputs[0] == slot ? 1 : 0];
  return plan.ConstantOf(other) == nullptr ? other : kNoSlot;
}

// Takes `step`, which reads tail->output, into the tail. False: it does not
// belong there.
bool Extend(const PlanEditor& plan, const Step& step,
            const ChannelLayout& layout, bool with_residual, LayerTail* tail) {
  if (tail->residual == kNoSlot) {
    const std::optional<ChannelAffine> affine =
        ReadChannelAffine(plan, step, tail->output, layout);
    if (affine.has_value()) {
      tail->affine = Compose(tail->affine, *affine);
      return true;
    }
    const int other = OtherOfSum(plan, step, tail->output);
    if (with_residual && other != kNoSlot) {
      tail->residual = other;
      return true;
    }
  }
  if (!ComputesFloats(step)) return false;
  switch (graph::ActivationOf(step.op)) {
    case graph::Activation::kRelu:
      tail->rectifier = Rectifier::kRelu;
      return true;
    case graph::Activation::kRelu6:
      tail->rectifier = Rectifier::kRelu6;
      return true;
    case graph::Activation::kNone:
      return false;
  }
  return false;
}

}  // namespace

LayerTail FollowTail(const PlanEditor& plan, int first,
                     const ChannelLayout& layout, bool with_residual) {
  LayerTail tail;
  tail.members = {first};
  tail.output = plan.step(first)->outputs[0];
  while (tail.rectifier == Rectifier::kNone) {
    const int next = plan.OnlyReaderOf(tail.output);
    if (next == kNoStep || plan.step(next)->node == nullptr) break;
    LayerTail longer = tail;
    if (!Extend(plan, *plan.step(next), layout, with_residual, &longer)) break;
    longer.members.push_back(next);
    longer.output = plan.step(next)->outputs[0];
    if (!plan.MayFuse(longer.members, {longer.output})) break;
    tail = std::move(longer);
  }
  return tail;
}

}  // namespace optfarm::runtime
