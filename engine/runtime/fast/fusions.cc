#include "engine/runtime/fast/fusions.h"

#include <algorithm>
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
  packed_bytes_ += *bytes;
  return packed;
}

int64_t FusionContext::LimitWeights(int64_t limit) const {
  // Handles of one form side by side: it is streamed by all of them.
  std::sort(streamable_.begin(), streamable_.end(),
            [](const PackedWeights& a, const PackedWeights& b) {
              return a.packed_bytes() != b.packed_bytes()
                         ? a.packed_bytes() < b.packed_bytes()
                         : a.id() < b.id();
            });
  int64_t streamed = 0;
  int64_t largest = 0;
  const void* last = nullptr;
  for (const PackedWeights& packed : streamable_) {
    if (packed.id() != last) {
      if (packed_bytes_ - streamed + largest <= limit) break;
      streamed += packed.packed_bytes();
      largest = packed.packed_bytes();
      last = packed.id();
    }
    packed.Stream();
  }
  return streamed;
}

absl::Span<const Fusion> AllFusions() {
  static constexpr Fusion kFusions[] = {
      FuseInt8Layers,   FuseFloatConvolutions, FuseFloatDepthwise,
      FuseFloatMatMuls, ReplaceFloatPools,     ReplaceAudio,
      FuseElements,
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
