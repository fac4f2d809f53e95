// Depthwise convolution -> convolution of single pixels, both as the fusions
// before made them.

#include <utility>

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/separable.h"

namespace optfarm::runtime {
namespace {

void FuseSeparable(const FusionContext& context, int depthwise,
                   PlanEditor* plan) {
  const Step& first = *plan->step(depthwise);
  const LineMaker* lines = context.TraitsOf(first.kernel.get()).lines;
  if (lines == nullptr || first.outputs.size() != 1) return;
  const int pixelwise = plan->OnlyReaderOf(first.outputs[0]);
  if (pixelwise == kNoStep) return;
  const Step& second = *plan->step(pixelwise);
  const KernelTraits traits = context.TraitsOf(second.kernel.get());
  if (traits.pixels == nullptr || !traits.pixels->IsSmall() ||
      second.inputs != first.outputs ||
      !plan->MayFuse({depthwise, pixelwise}, second.outputs)) {
    return;
  }
  FusedStep fused;
  fused.inputs = first.inputs;
  fused.outputs = second.outputs;
  SeparableParts parts;
  parts.lines = lines;
  parts.pixels = traits.pixels;
  parts.depthwise = plan->TakeKernel(depthwise);
  parts.pixelwise = plan->TakeKernel(pixelwise);
  fused.kernel = MakeSeparable(std::move(parts));
  context.TraitsOf(fused.kernel.get()).reader = traits.reader;
  plan->Fuse({depthwise, pixelwise}, std::move(fused));
}

}  // namespace

void FuseSeparables(const FusionContext& context, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) FuseSeparable(context, i, plan);
  }
}

}  // namespace optfarm::runtime
