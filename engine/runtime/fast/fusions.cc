#include "engine/runtime/fast/fusions.h"

#include "engine/runtime/fast/families.h"
#include "engine/runtime/fast/int8_fusion.h"

namespace optfarm::runtime {

absl::StatusOr<Tensor> FusionContext::Pack(
    const Tensor& weights, absl::string_view layout,
    absl::FunctionRef<absl::StatusOr<Tensor>()> pack) const {
  const bool is_of_model = model_ != nullptr && model_->IsValue(weights);
  PackedWeights& known = is_of_model ? model_->packed() : of_pass_;
  return known.FindOrPack(weights, layout, pack);
}

int64_t FusionContext::BytesOnce(const Tensor& packed) const {
  return counted_.insert(packed.raw()).second ? packed.TotalBytes() : 0;
}

void FusionContext::EndPass() const { of_pass_.Clear(); }

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
    context.EndPass();
  }
}

}  // namespace optfarm::runtime
