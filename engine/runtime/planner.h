// From a graph to what a session runs.

#ifndef OPTFARM_ENGINE_RUNTIME_PLANNER_H_
#define OPTFARM_ENGINE_RUNTIME_PLANNER_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/execution_plan.h"
#include "engine/runtime/session.h"

namespace optfarm::runtime {

// The steps that `fetches` need when `feeds` are given, with their kernels.
// ERRORS: as Session::Create.
absl::StatusOr<ExecutionPlan> MakePlan(
    const graph::Graph& graph, absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches, const SessionOptions& options);

// Runs ahead what depends on constants alone. A step that fails here is left
// for the run, where it may turn out to be dead.
void FoldConstants(const KernelEnvironment& environment, ExecutionPlan* plan);

// Notes where each loop begins and ends. To be called when steps moved.
void NumberLoopSteps(ExecutionPlan* plan);

// Finds after which step each value is not needed any more. The last pass over
// a plan: steps do not change afterwards.
void PlanLifetimes(ExecutionPlan* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLANNER_H_
