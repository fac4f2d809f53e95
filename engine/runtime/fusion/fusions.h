// The catalog of fusions (fusion.h), in the order in which they run, and what
// runs them.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/fusion/fusion.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/fused_nodes.h"
#include "engine/runtime/plan/weight_ledger.h"
#include "engine/runtime/ukernels/cpu_features.h"

namespace optfarm::runtime {

// OWNERSHIP: lives for the whole process.
absl::Span<const Fusion* const> AllFusions();
// Those of AllFusions() that OPTFARM_WITHOUT (names with ',' between) and a
// FusionLimit leave. THREADS: safe.
std::vector<const Fusion*> UsedFusions();

// Leaves one fusion out of plans that are made while it lives.
// THREADS: one at a time in the whole process; for tests and benchmarks.
class FusionLimit {
 public:
  // ERRORS: none; an unknown name leaves nothing out.
  explicit FusionLimit(absl::string_view without);
  ~FusionLimit();
  FusionLimit(const FusionLimit&) = delete;
  FusionLimit& operator=(const FusionLimit&) = delete;
};

// Runs fusions over a plan whose constants are folded and whose lifetimes are
// not yet planned. The nodes of the plan's steps must still be there. `weights`
// are those that the fusions packed; `taken` receives what each of them did,
// unless it is nullptr.
void RunFusions(absl::Span<const Fusion* const> fusions, const CpuFeatures& cpu,
                ExecutionPlan* plan, WeightLedger* weights,
                std::vector<FusedNodes>* taken = nullptr);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_
