// The values of a graph's constants, for a plan that is being made.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_CONSTANTS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_CONSTANTS_H_

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/runtime/execution_plan.h"
#include "engine/runtime/planner.h"

namespace optfarm::runtime {

// The value of a Const node: the model's where it has one. Notes in
// `plan->weights` who packs it.
// ERRORS: InvalidArgument, naming the node, for one that is not well formed.
absl::StatusOr<Tensor> ConstValue(const graph::Graph& graph, graph::NodeId id,
                                  const PlanRequest& request,
                                  ExecutionPlan* plan);
// The same of an ImmutableConst node. ERRORS: ReadImmutableConst's, naming the
// node.
absl::StatusOr<Tensor> ImmutableConstValue(const graph::Graph& graph,
                                           graph::NodeId id,
                                           const PlanRequest& request,
                                           ExecutionPlan* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_CONSTANTS_H_
