// The values of a graph's constants, for a plan that is being made.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_CONSTANTS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_CONSTANTS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/plan_request.h"

namespace optfarm::runtime {

// The value of a Const node: the model's where it has one. Notes in
// `plan->weights` who packs it.
// ERRORS: InvalidArgument, naming the node, for one that is not well formed.
absl::StatusOr<Tensor> ConstValue(const graph::Graph& graph, graph::NodeId id,
                                  const PlanRequest& request,
                                  ExecutionPlan* plan);
// The same of an ImmutableConst node; it may be misaligned. ERRORS:
// ReadImmutableConst's, naming the node.
absl::StatusOr<Tensor> ImmutableConstValue(const graph::Graph& graph,
                                           graph::NodeId id,
                                           const PlanRequest& request,
                                           ExecutionPlan* plan);

// The value of a slot, which stands at any byte of a mapped file, is copied to
// where kernels count on; does nothing for any other slot. To be called while
// `plan->weights` is there. ERRORS: ResourceExhausted.
absl::Status AlignConstant(int slot, ExecutionPlan* plan);
// The same for all slots; `packed_later`: but for those that only layers read
// which may pack them. ERRORS: ResourceExhausted.
absl::Status AlignConstants(bool packed_later, ExecutionPlan* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_CONSTANTS_H_
