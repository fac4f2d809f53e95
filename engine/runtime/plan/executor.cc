#include "engine/runtime/plan/executor.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/run_bounds.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/core/variable.h"

namespace optfarm::runtime {
namespace {

bool HasLivingControls(const std::vector<int>& controls, const Tensor* slots) {
  for (int slot : controls) {
    if (!slots[slot].has_value()) return false;
  }
  return true;
}

bool HasLivingInputs(const Step& step, const Tensor* slots) {
  for (int slot : step.inputs) {
    if (!slots[slot].has_value()) return false;
  }
  return true;
}

void Kill(const Step& step, Tensor* slots) {
  for (int slot : step.outputs) {
    if (slot != kNoSlot && slots[slot].has_value()) slots[slot] = Tensor();
  }
  if (step.ran != kNoSlot) slots[step.ran] = Tensor();
}

// Moves the value where nobody else reads it.
void HandOn(const Step& step, int input, int output, Tensor* slots) {
  if (step.outputs[output] == kNoSlot) return;
  Tensor& from = slots[step.inputs[input]];
  Tensor& to = slots[step.outputs[output]];
  if (!step.last_use.empty() && step.last_use[input]) {
    to = std::move(from);
    from = Tensor();
  } else {
    to = from;
  }
}

absl::Status RunKernel(const Step& step, const KernelEnvironment& environment,
                       Tensor* slots, RunMemory* memory) {
  absl::InlinedVector<Tensor*, 8> inputs;
  for (int slot : step.inputs) inputs.push_back(&slots[slot]);
  absl::InlinedVector<Tensor*, 4> outputs;
  Tensor unwanted;
  for (int slot : step.outputs) {
    outputs.push_back(slot == kNoSlot ? &unwanted : &slots[slot]);
    if (outputs.back()->has_value()) *outputs.back() = Tensor();
  }
  KernelContext context(inputs, outputs, environment);
  // Before lifetimes are planned every value may still be read by others.
  const std::vector<bool> none(
      step.last_use.empty() ? step.inputs.size() : size_t{0}, false);
  context.set_reusable(step.last_use.empty() ? &none : &step.last_use);
  const MemoryScope scope(step.has_places ? memory : nullptr);
  return ComputeOrLeave(*step.kernel, &context);
}

absl::Status RunSwitch(const Step& step, Tensor* slots) {
  const Tensor& pred = slots[step.inputs[1]];
  if (pred.dtype() != tensorflow::DT_BOOL || pred.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'pred' must be one bool, got ", pred.DebugString(0)));
  }
  const int taken = *pred.data<bool>() ? 1 : 0;
  const int other = step.outputs[1 - taken];
  if (other != kNoSlot) slots[other] = Tensor();
  HandOn(step, 0, taken, slots);
  return absl::OkStatus();
}

void RunMerge(const ExecutionPlan& plan, const Step& step, Tensor* slots) {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (!slots[step.inputs[i]].has_value()) continue;
    HandOn(step, static_cast<int>(i), 0, slots);
    if (step.outputs[1] != kNoSlot) {
      slots[step.outputs[1]] = plan.merge_indices[i];
    }
    return;
  }
  Kill(step, slots);
}

absl::Status RunReadVariable(const Step& step, Tensor* slots) {
  const Variable* variable = VariableOf(slots[step.inputs[0]]);
  if (variable == nullptr) {
    // A reference to something else: the handle of a table or an array.
    HandOn(step, 0, 0, slots);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(slots[step.outputs[0]], variable->Read());
  return absl::OkStatus();
}

absl::Status RunAlive(const ExecutionPlan& plan, const Step& step,
                      const KernelEnvironment& environment, Tensor* slots,
                      RunMemory* memory) {
  switch (step.kind) {
    case StepKind::kKernel:
      return RunKernel(step, environment, slots, memory);
    case StepKind::kForward:
    case StepKind::kExit:
      HandOn(step, 0, 0, slots);
      return absl::OkStatus();
    case StepKind::kSwitch:
      return RunSwitch(step, slots);
    case StepKind::kReadVariable:
      return RunReadVariable(step, slots);
    case StepKind::kMerge:
    case StepKind::kLoopBegin:
    case StepKind::kLoopEnd:
      break;
  }
  return absl::OkStatus();
}

// One run through the steps.
class Walk {
 public:
  Walk(const ExecutionPlan& plan, const KernelEnvironment& environment,
       const RunOptions& options, RunState* state)
      : plan_(plan),
        environment_(environment),
        options_(options),
        bounds_(options.cancelled, options.timeout, options.clock),
        bounds_scope_(bounds_.is_bounded() ? &bounds_ : nullptr),
        scratch_scope_(&state->scratch),
        state_(*state),
        slots_(state->slots.data()) {}

  absl::Status Run();

 private:
  // Whether the loop runs at all: nothing that enters may be alive.
  bool Begin(const LoopPlan& loop);
  // Whether a value is left for another iteration.
  bool Continue(const LoopPlan& loop);
  void Leave(const LoopPlan& loop);
  absl::Status RunTraced(const Step& step);
  void Release(const Step& step) {
    for (int slot : step.release) slots_[slot] = Tensor();
  }

  const ExecutionPlan& plan_;
  const KernelEnvironment& environment_;
  const RunOptions& options_;
  const RunBounds bounds_;
  const BoundsScope bounds_scope_;
  const ScratchScope scratch_scope_;
  RunState& state_;
  Tensor* slots_;
  absl::Time start_ = absl::Now();
};

bool Walk::Begin(const LoopPlan& loop) {
  bool is_alive = false;
  for (const LoopPlan::Entry& entry : loop.entries) {
    const bool enters = slots_[entry.from].has_value() &&
                        HasLivingControls(entry.controls, slots_);
    is_alive |= enters;
    if (entry.to == kNoSlot || entry.to == entry.from) continue;
    slots_[entry.to] = enters ? slots_[entry.from] : Tensor();
  }
  for (const LoopPlan::Carry& carry : loop.carries) {
    slots_[carry.current] = Tensor();
    slots_[carry.next] = Tensor();
  }
  for (int slot : loop.exits) slots_[slot] = Tensor();
  return is_alive;
}

bool Walk::Continue(const LoopPlan& loop) {
  bool is_alive = false;
  for (const LoopPlan::Carry& carry : loop.carries) {
    is_alive |= slots_[carry.next].has_value();
  }
  if (!is_alive) return false;
  for (const LoopPlan::Entry& entry : loop.entries) {
    if (!entry.is_constant && entry.to != kNoSlot) slots_[entry.to] = Tensor();
  }
  // One NextIteration may lead to several Merge nodes.
  for (const LoopPlan::Carry& carry : loop.carries) {
    slots_[carry.current] = slots_[carry.next];
  }
  for (const LoopPlan::Carry& carry : loop.carries) {
    slots_[carry.next] = Tensor();
  }
  return true;
}

void Walk::Leave(const LoopPlan& loop) {
  for (const LoopPlan::Entry& entry : loop.entries) {
    if (entry.to != kNoSlot && entry.to != entry.from) {
      slots_[entry.to] = Tensor();
    }
  }
  for (const LoopPlan::Carry& carry : loop.carries) {
    slots_[carry.current] = Tensor();
    slots_[carry.next] = Tensor();
  }
}

absl::Status Walk::RunTraced(const Step& step) {
  const absl::Time begin = absl::Now();
  OPTFARM_RETURN_IF_ERROR(
      RunStep(plan_, step, environment_, slots_, &state_.memory));
  NodeTiming timing{step.name, step.op, begin - start_,  absl::Now() - begin,
                    0,         {},      step.fused_names};
  for (int slot : step.outputs) {
    if (slot == kNoSlot) continue;
    timing.output_bytes += slots_[slot].TotalBytes();
    timing.outputs.push_back({slots_[slot].dtype(), slots_[slot].shape()});
  }
  options_.trace->nodes.push_back(std::move(timing));
  return absl::OkStatus();
}

absl::Status Walk::Run() {
  const bool is_bounded = bounds_.is_bounded();
  const int count = static_cast<int>(plan_.steps.size());
  for (int at = 0; at < count; ++at) {
    if (is_bounded) OPTFARM_RETURN_IF_ERROR(bounds_.Check());
    const Step& step = plan_.steps[at];
    state_.memory.set_step(at);
    if (step.kind == StepKind::kLoopBegin) {
      const LoopPlan& loop = plan_.loops[step.loop];
      state_.iterations[step.loop] = 0;
      const bool is_alive = Begin(loop);
      Release(step);
      if (is_alive) continue;
      Leave(loop);
      at = loop.end;
      Release(plan_.steps[at]);
      continue;
    }
    if (step.kind == StepKind::kLoopEnd) {
      const LoopPlan& loop = plan_.loops[step.loop];
      if (Continue(loop)) {
        ++state_.iterations[step.loop];
        at = loop.begin;
        continue;
      }
      Leave(loop);
    } else if (options_.trace != nullptr && !step.is_helper) {
      OPTFARM_RETURN_IF_ERROR(RunTraced(step));
    } else {
      OPTFARM_RETURN_IF_ERROR(
          RunStep(plan_, step, environment_, slots_, &state_.memory));
    }
    Release(step);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunStep(const ExecutionPlan& plan, const Step& step,
                     const KernelEnvironment& environment, Tensor* slots,
                     RunMemory* memory) {
  if (step.kind == StepKind::kMerge) {
    RunMerge(plan, step, slots);
    return absl::OkStatus();
  }
  const bool is_alive =
      step.takes_dead_inputs ||
      (HasLivingInputs(step, slots) &&
       (step.ignores_dead_controls || HasLivingControls(step.controls, slots)));
  if (!is_alive) {
    if (step.kind != StepKind::kExit) Kill(step, slots);
    return absl::OkStatus();
  }
  const absl::Status status = RunAlive(plan, step, environment, slots, memory);
  if (!status.ok()) return Annotate(status, DescribeNode(step.name, step.op));
  if (step.ran != kNoSlot) slots[step.ran] = plan.token();
  return absl::OkStatus();
}

absl::Status Execute(const ExecutionPlan& plan,
                     const KernelEnvironment& environment,
                     const RunOptions& options, RunState* state) {
  return Walk(plan, environment, options, state).Run();
}

}  // namespace optfarm::runtime
