// The fusions: passes over a plan whose constants are folded, each of which
// replaces patterns of steps by one step with a faster kernel. Weights that are
// constant are packed when a run first needs them (packed_weights.h).
//
// A fusion may change results within the rounding of the dtype and no more; the
// reference kernels (kernels/) decide what is right. It never touches a value
// that somebody can see: one that is fetched, that another step reads or waits
// for (plan_editor.h checks that). Where a fused kernel meets inputs at run
// time that it has no fast code for, it runs the steps that it replaced
// (step_chain.h).
//
// One file for each family of patterns, one line in fusions.cc. What they run
// are operators/, driving micro-kernels (ukernels/micro_kernel.h).

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/fusion/int8_image.h"
#include "engine/runtime/fusion/joined_part.h"
#include "engine/runtime/fusion/pooled_convolution.h"
#include "engine/runtime/fusion/separable.h"
#include "engine/runtime/operators/next_weights.h"
#include "engine/runtime/operators/winograd_convolution.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/plan_editor.h"
#include "engine/runtime/ukernels/cpu_features.h"

namespace optfarm::runtime {

// What a kernel is besides, for fusions that come after the one that made it.
// OWNERSHIP: the plan's.
struct KernelTraits {
  WeightReader* reader = nullptr;
  JoinableKernel* joinable = nullptr;
  const LineMaker* lines = nullptr;
  const PixelLayer* pixels = nullptr;
  WinogradLayer* winograd = nullptr;
  const LineLayer* line_layer = nullptr;
  const PoolLayer* pool = nullptr;
  const FloatCodes* codes = nullptr;
  const FloatImageLayer* floats = nullptr;
};

// What a fusion may use. OWNERSHIP: borrowed.
class FusionContext {
 public:
  explicit FusionContext(const CpuFeatures& cpu) : cpu_(cpu) {}

  const CpuFeatures& cpu() const { return cpu_; }
  // A constant of the plan, to be packed when a run first needs it: once for
  // all steps, and for all sessions over a model where it is the model's.
  // `bytes` are those of the packed form, 0 when it was asked for before.
  // ERRORS: ResourceExhausted when the limit of what is loaded would be passed.
  absl::StatusOr<PackedWeights> Pack(const Tensor& weights, WeightLayout layout,
                                     PlanEditor* plan, int64_t* bytes) const;
  // The kernel can do with weights that are streamed.
  void MayStream(const PackedWeights& packed) const {
    if (packed.is_mapped()) streamable_.push_back(packed);
  }
  // What a step's kernel can do besides; may be added to. Good until another
  // kernel is asked for.
  KernelTraits& TraitsOf(const Kernel* kernel) const { return traits_[kernel]; }
  // Tells each reader of weights in the plan what the next one reads.
  void LinkReaders(const ExecutionPlan& plan) const;
  // It can read them in place as well, when there is one row to multiply.
  void MayReadInPlace(const PackedWeights& packed) const {
    if (packed.is_mapped()) readable_.push_back(packed);
  }
  // Lets weights of a large model stay in its file where that costs next to
  // nothing: those that a run reads once are read in place, as long as they are
  // few beside the others, those that it multiplies with many rows streamed. To
  // be called after all fusions. UNITS: bytes; returns those that are read in
  // place.
  int64_t LeaveInFile() const;
  // Has weights streamed, the smallest first, until those that stay packed and
  // the largest of the others take no more than `limit`, or none is left that
  // may be. To be called after LeaveInFile. UNITS: bytes; returns those of the
  // streamed weights.
  int64_t LimitWeights(int64_t limit) const;

 private:
  CpuFeatures cpu_;
  // Forms that were asked for, and their bytes.
  mutable absl::flat_hash_set<const void*> counted_;
  mutable int64_t packed_bytes_ = 0;
  mutable std::vector<PackedWeights> streamable_;
  // OWNERSHIP: the plan's.
  mutable absl::flat_hash_map<const Kernel*, KernelTraits> traits_;
  mutable std::vector<PackedWeights> readable_;
};

// One pass. What it cannot fuse (also for want of memory) stays as it is.
using Fusion = void (*)(const FusionContext& context, PlanEditor* plan);

// One of those that there are.
struct NamedFusion {
  absl::string_view name;
  Fusion run;
};

// In the order in which they run.
absl::Span<const NamedFusion> AllFusions();
// Those of AllFusions() that OPTFARM_WITHOUT (names with ',' between) and a
// FusionLimit leave. THREADS: safe.
std::vector<Fusion> UsedFusions();

// Leaves one fusion out of plans that are made while it lives.
// THREADS: one at a time in the whole process; for tests and benchmarks.
class FusionLimit {
 public:
  // ERRORS: none; a name that is not known leaves nothing out.
  explicit FusionLimit(absl::string_view without);
  ~FusionLimit();
  FusionLimit(const FusionLimit&) = delete;
  FusionLimit& operator=(const FusionLimit&) = delete;
};

// Runs fusions over a plan whose constants are folded and whose lifetimes are
// not yet planned. The nodes of the plan's steps must still be there.
void RunFusions(absl::Span<const Fusion> fusions, const FusionContext& context,
                ExecutionPlan* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_FUSIONS_H_
