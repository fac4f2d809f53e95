// What is moved about in a plan so that loops have fewer steps, and fusions see
// more of them.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/plan/loop_nest.h"
#include "engine/runtime/plan/planner.h"

namespace optfarm::runtime {
namespace {

// Slots whose values must be made where the graph says.
absl::flat_hash_set<int> FixedSlots(const ExecutionPlan& plan) {
  absl::flat_hash_set<int> fixed(plan.fetch_slots.begin(),
                                 plan.fetch_slots.end());
  for (const Step& step : plan.steps) {
    fixed.insert(step.controls.begin(), step.controls.end());
    // These do not die with one of their inputs, or look at them elsewhere.
    if (step.kind == StepKind::kMerge || step.kind == StepKind::kLoopBegin ||
        step.kind == StepKind::kLoopEnd || step.ignores_dead_controls) {
      fixed.insert(step.inputs.begin(), step.inputs.end());
    }
  }
  for (const LoopPlan& loop : plan.loops) {
    for (const LoopPlan::Carry& carry : loop.carries) fixed.insert(carry.next);
    fixed.insert(loop.exits.begin(), loop.exits.end());
  }
  return fixed;
}

// By slot, what its constant waited for; nothing for another slot.
using WaitedFor = std::vector<std::vector<int>>;

// A constant that waits, or one with the other sign: symmetric ranges of
// weights are kept as one of their ends.
bool IsWaitingConstant(const Step& step, const WaitedFor& waited) {
  const bool is_constant = graph::IsConst(step.op) && !step.controls.empty();
  const bool is_negated = graph::IsNegate(step.op) && step.inputs.size() == 1 &&
                          !waited[step.inputs[0]].empty();
  return (is_constant || is_negated) && step.kind == StepKind::kKernel &&
         step.ran == kNoSlot && step.outputs.size() == 1 &&
         step.outputs[0] != kNoSlot;
}

absl::StatusOr<Tensor> ValueOf(const Step& constant, const ExecutionPlan& plan,
                               const KernelEnvironment& environment) {
  std::vector<Tensor> inputs;
  for (int slot : constant.inputs) inputs.push_back(plan.initial[slot]);
  Tensor value;
  KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(&value, 1),
                        environment);
  const absl::Status status = ComputeOrLeave(*constant.kernel, &context);
  if (!status.ok()) return status;
  return value;
}

}  // namespace

void LetReadersWait(const KernelEnvironment& environment, ExecutionPlan* plan) {
  const absl::flat_hash_set<int> fixed = FixedSlots(*plan);
  WaitedFor waited(plan->initial.size());
  std::vector<Step> left;
  for (Step& step : plan->steps) {
    const bool is_constant = IsWaitingConstant(step, waited);
    for (int slot : step.inputs) {
      for (int control : waited[slot]) {
        if (absl::c_linear_search(step.controls, control)) continue;
        step.controls.push_back(control);
      }
    }
    if (is_constant && !fixed.contains(step.outputs[0])) {
      absl::StatusOr<Tensor> value = ValueOf(step, *plan, environment);
      if (value.ok()) {
        plan->initial[step.outputs[0]] = *std::move(value);
        waited[step.outputs[0]] = std::move(step.controls);
        continue;
      }
    }
    left.push_back(std::move(step));
  }
  plan->steps = std::move(left);
  NumberLoopSteps(plan);
}

void EndIterationsLast(ExecutionPlan* plan) {
  absl::flat_hash_set<int> read;
  for (const Step& step : plan->steps) {
    read.insert(step.inputs.begin(), step.inputs.end());
    read.insert(step.controls.begin(), step.controls.end());
  }
  std::vector<Step> steps;
  // By loops that are open, innermost last.
  std::vector<std::vector<Step>> ends;
  for (Step& step : plan->steps) {
    if (step.kind == StepKind::kLoopBegin) ends.emplace_back();
    if (step.kind == StepKind::kLoopEnd) {
      for (Step& end : ends.back()) steps.push_back(std::move(end));
      ends.pop_back();
    }
    const bool may_wait =
        !ends.empty() && IsNextIteration(step.op) &&
        step.kind == StepKind::kForward && step.ran == kNoSlot &&
        std::none_of(step.outputs.begin(), step.outputs.end(),
                     [&](int slot) { return read.contains(slot); });
    (may_wait ? ends.back() : steps).push_back(std::move(step));
  }
  plan->steps = std::move(steps);
  NumberLoopSteps(plan);
}

}  // namespace optfarm::runtime
