// Convolutions by Winograd's filtering: who makes a convolution is told of it,
// and chooses for each image.

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/operators/winograd_convolution.h"

namespace optfarm::runtime {

void UseWinograd(const FusionContext& context, PlanEditor* plan) {
  const WinogradTransforms* transforms = FindWinograd(context.cpu());
  if (transforms == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    if (step == nullptr) continue;
    WinogradLayer* layer = context.TraitsOf(step->kernel.get()).winograd;
    if (layer != nullptr) layer->UseWinograd(transforms);
  }
}

}  // namespace optfarm::runtime
