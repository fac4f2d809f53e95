// Convolution -> MaxPool or AvgPool, both as the fusions before made them.

#include <utility>

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/pooled_convolution.h"

namespace optfarm::runtime {
namespace {

void FusePool(const FusionContext& context, int convolution, PlanEditor* plan) {
  const Step& first = *plan->step(convolution);
  const KernelTraits traits = context.TraitsOf(first.kernel.get());
  if (traits.line_layer == nullptr || first.inputs.size() != 1 ||
      first.outputs.size() != 1) {
    return;
  }
  const int pool = plan->OnlyReaderOf(first.outputs[0]);
  if (pool == kNoStep) return;
  const Step& second = *plan->step(pool);
  const PoolLayer* slides = context.TraitsOf(second.kernel.get()).pool;
  // A part of a joined value has other inputs or outputs.
  if (slides == nullptr || second.inputs != first.outputs ||
      !plan->MayFuse({convolution, pool}, second.outputs)) {
    return;
  }
  FusedStep fused;
  fused.inputs = first.inputs;
  fused.outputs = second.outputs;
  PooledParts parts;
  parts.lines = traits.line_layer;
  parts.slides = slides;
  parts.convolution = plan->TakeKernel(convolution);
  parts.pool = plan->TakeKernel(pool);
  fused.kernel = MakePooledConvolution(std::move(parts));
  context.TraitsOf(fused.kernel.get()).reader = traits.reader;
  plan->Fuse({convolution, pool}, std::move(fused));
}

}  // namespace

void FusePooledConvolutions(const FusionContext& context, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) FusePool(context, i, plan);
  }
}

}  // namespace optfarm::runtime
