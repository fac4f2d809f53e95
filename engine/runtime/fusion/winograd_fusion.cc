// 3x3 convolutions by Winograd's filtering: the kernel is told which transforms
// this processor runs, and chooses for each image.

#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/kernel_role.h"
#include "engine/runtime/operators/winograd_convolution.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

void UseWinograd(const CpuFeatures& cpu, PlanEditor* plan) {
  const WinogradTransforms* transforms =
      SelectFunctions(&MicroKernelFunction::winograd, cpu);
  if (transforms == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    const Step* step = plan->step(i);
    if (step == nullptr) continue;
    auto* const layer = RoleOf<WinogradLayer>(step->kernel.get());
    if (layer == nullptr || !layer->MayUseWinograd()) continue;
    layer->UseWinograd(transforms);
    plan->NoteChange(i);
  }
}

}  // namespace

const Fusion kWinogradFusion = {
    .name = "winograd",
    .pattern = "a 3x3 convolution on floats, as \"convolution\" made it",
    .replacement =
        "the same step, by Winograd's F(2x2, 3x3) for images where "
        "it is faster",
    .run = UseWinograd,
};

}  // namespace optfarm::runtime
