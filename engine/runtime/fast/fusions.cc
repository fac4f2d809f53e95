#include "engine/runtime/fast/fusions.h"

#include "engine/runtime/fast/families.h"
#include "engine/runtime/fast/int8_fusion.h"

namespace optfarm::runtime {

absl::StatusOr<Tensor> FusionContext::Pack(
    const Tensor& weights, absl::string_view layout,
    absl::FunctionRef<absl::StatusOr<Tensor>()> pack) const {
  if (model_ == nullptr || !model_->IsValue(weights)) return pack();
  return model_->packed().FindOrPack(weights, layout, pack);
}

absl::Span<const Fusion> AllFusions() {
  static constexpr Fusion kFusions[] = {
      FuseInt8Layers,   FuseFloatConvolutions, FuseFloatDepthwise,
      FuseFloatMatMuls, ReplaceFloatPools,
  };
  return kFusions;
}

void RunFusions(absl::Span<const Fusion> fusions, const FusionContext& context,
                ExecutionPlan* plan) {
  for (const Fusion fusion : fusions) {
    PlanEditor editor(plan);
    fusion(context, &editor);
    editor.Finish();
  }
}

}  // namespace optfarm::runtime
