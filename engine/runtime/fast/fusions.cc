#include "engine/runtime/fast/fusions.h"

#include <memory>
#include <utility>

#include "engine/runtime/fast/families.h"
#include "engine/runtime/fast/int8_fusion.h"
#include "engine/runtime/memory_budget.h"

namespace optfarm::runtime {

absl::StatusOr<PackedWeights> FusionContext::Pack(const Tensor& weights,
                                                  WeightLayout layout,
                                                  PlanEditor* plan,
                                                  int64_t* bytes) const {
  const PackedWeights packed(plan->WeightsOf(weights), std::move(layout));
  const bool is_new = counted_.insert(packed.id()).second;
  *bytes = is_new ? packed.packed_bytes() : 0;
  const std::shared_ptr<MemoryBudget>* budget = BudgetScope::Current();
  if (budget != nullptr && !(*budget)->Take(*bytes)) {
    counted_.erase(packed.id());
    return absl::ResourceExhaustedError("no memory to pack weights");
  }
  return packed;
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
