// From a graph to what a session runs.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_PLANNER_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_PLANNER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/plan_request.h"

namespace optfarm::runtime {

// The steps that the fetches need when the feeds are given, with their kernels.
// ERRORS: as Session::Create.
absl::StatusOr<ExecutionPlan> MakePlan(const graph::Graph& graph,
                                       const PlanRequest& request);

// Runs ahead what depends on constants alone. A step that fails here is left
// for the run, where it may turn out to be dead; so is one whose results would
// take more than `memory_limit`, or far more than the constants there are; and
// so are steps of `left_ops`.
// UNITS: bytes.
void FoldConstants(const KernelEnvironment& environment, int64_t memory_limit,
                   ExecutionPlan* plan,
                   absl::Span<const absl::string_view> left_ops = {});

// A constant that waits (within a loop, for the iteration), and one with the
// other sign, is a value that is always there, and who reads it waits instead:
// one step less.
void LetReadersWait(const KernelEnvironment& environment, ExecutionPlan* plan);

// Puts each NextIteration at the end of its loop: what it hands on is read
// there, and nothing stands between the steps that it stood among.
void EndIterationsLast(ExecutionPlan* plan);

// A step that takes a slot's value out of a loop.
struct Tap {
  int slot = kNoSlot;
  Step step;
};

// Puts each tap right behind the step that makes its value.
void InsertTaps(std::vector<Tap> taps, ExecutionPlan* plan);

// Notes where each loop begins and ends. To be called when steps moved.
void NumberLoopSteps(ExecutionPlan* plan);

// Gives up constants that no step reads.
void DropUnreadConstants(ExecutionPlan* plan);

// Finds after which step each value is not needed any more. The last pass over
// a plan: steps do not change afterwards. `reuse_buffers`: a step may take over
// the buffer of an input that it is the last to read.
void PlanLifetimes(bool reuse_buffers, ExecutionPlan* plan);

// Lets steps outside of loops have places in one piece of memory, and foresees
// it for the inputs that `graph`, which the plan was made from, tells of: those
// of its placeholders' shapes, with 1 for a leading dimension that is not
// known. To be called when lifetimes are known.
void PlanMemory(const graph::Graph& graph, const PlanRequest& request,
                ExecutionPlan* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_PLANNER_H_
