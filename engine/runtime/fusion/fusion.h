// What a fusion is: a pass over a plan whose constants are folded. It finds a
// pattern of steps and replaces each match by one step with a faster kernel.
// fusions.h has the catalog of all, docs/adding-a-fusion.md shows how one is
// added.
//
// A fusion may change results within the rounding of the dtype and no more; the
// reference kernels (engine/runtime/reference) decide what is right. It never
// touches a value that somebody can see: one that is fetched, or that another
// step reads or waits for (PlanEditor::MayFuse checks that). Where a fused
// kernel meets inputs at run time that it has no fast code for, it runs the
// steps that it replaced (step_chain.h). What it cannot fuse, for want of
// memory too, stays as it is.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FUSION_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FUSION_H_

#include "absl/strings/string_view.h"
#include "engine/runtime/plan/plan_editor.h"
#include "engine/runtime/ukernels/cpu_features.h"

namespace optfarm::runtime {

struct Fusion {
  // The off switch: OPTFARM_WITHOUT=name in the environment, and FusionLimit.
  absl::string_view name;
  // The steps that it looks for: ops, with [] around what may be missing.
  absl::string_view pattern;
  // What runs instead, in one line.
  absl::string_view replacement;
  // Finds and replaces. `cpu` says which kernels this processor runs; weights
  // are packed, and steps replaced, through the editor.
  void (*run)(const CpuFeatures& cpu, PlanEditor* plan);
  // Wants weights as they are quantized: it runs before DequantizeLinear and
  // DequantizeBlocks of constants are folded.
  bool wants_quantized_constants = false;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FUSION_H_
