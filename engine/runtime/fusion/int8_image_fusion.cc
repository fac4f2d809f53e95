// QuantizeV2 -> a layer that can make the codes of its image itself, both as
// the fusions before made them.

#include <utility>

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/int8_image.h"

namespace optfarm::runtime {
namespace {

void FuseImage(const FusionContext& context, int quantize, PlanEditor* plan) {
  const Step& first = *plan->step(quantize);
  const FloatCodes* codes = context.TraitsOf(first.kernel.get()).codes;
  if (codes == nullptr || first.inputs.size() != 1) return;
  const int layer = plan->OnlyReaderOf(first.outputs[0]);
  if (layer == kNoStep) return;
  const Step& second = *plan->step(layer);
  const KernelTraits traits = context.TraitsOf(second.kernel.get());
  // A part of a joined value may have other inputs.
  if (traits.floats == nullptr || second.inputs != first.outputs ||
      !traits.floats->MayTakeFloats(codes->range) ||
      !plan->MayFuse({quantize, layer}, second.outputs)) {
    return;
  }
  FusedStep fused;
  fused.inputs = first.inputs;
  fused.outputs = second.outputs;
  Int8ImageParts parts;
  parts.codes = codes;
  parts.floats = traits.floats;
  parts.quantize = plan->TakeKernel(quantize);
  parts.layer = plan->TakeKernel(layer);
  fused.kernel = MakeInt8ImageLayer(std::move(parts));
  context.TraitsOf(fused.kernel.get()).reader = traits.reader;
  plan->Fuse({quantize, layer}, std::move(fused));
}

}  // namespace

void FuseInt8Images(const FusionContext& context, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) FuseImage(context, i, plan);
  }
}

}  // namespace optfarm::runtime
