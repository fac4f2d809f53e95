// What happens to a plan before it runs: taps of loops, folding of constants,
// lifetimes.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/plan/executor.h"
#include "engine/runtime/plan/plan_constants.h"
#include "engine/runtime/plan/planner.h"

namespace optfarm::runtime {
namespace {

// Beyond all real models; keeps products of bytes within 64 bits.
constexpr int64_t kMaxWeights = int64_t{1} << 50;

// Slots that loops fill and empty at their borders, not steps.
std::vector<bool> CarriedSlots(const ExecutionPlan& plan) {
  std::vector<bool> carried(plan.initial.size(), false);
  for (const LoopPlan& loop : plan.loops) {
    for (const LoopPlan::Carry& carry : loop.carries) {
      carried[carry.next] = true;
    }
  }
  return carried;
}

bool MayFold(const Step& step, const std::vector<bool>& known) {
  if (!step.is_pure || !step.controls.empty() || step.ran != kNoSlot) {
    return false;
  }
  if (step.kind != StepKind::kKernel && step.kind != StepKind::kForward) {
    return false;
  }
  for (int slot : step.inputs) {
    if (!known[slot]) return false;
  }
  return std::find(step.outputs.begin(), step.outputs.end(), kNoSlot) ==
         step.outputs.end();
}

// Of a step that is about to run: values of mapped files may be misaligned.
absl::Status AlignInputs(const Step& step, ExecutionPlan* plan) {
  if (step.kind != StepKind::kKernel) return absl::OkStatus();
  for (const int slot : step.inputs) {
    OPTFARM_RETURN_IF_ERROR(AlignConstant(slot, plan));
  }
  return absl::OkStatus();
}

// The step after which a slot's reader is done with it: the reader itself, or
// the end of the outermost loop around the reader that the slot is outside of.
class ReadTimes {
 public:
  explicit ReadTimes(const ExecutionPlan& plan)
      : plan_(plan), last_(plan.initial.size(), -1) {
    int loop = kNoLoop;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      if (step.kind == StepKind::kLoopEnd) loop = plan.loops[loop].parent;
      for (int slot : step.inputs) Note(slot, static_cast<int>(i), loop);
      for (int slot : step.controls) Note(slot, static_cast<int>(i), loop);
      if (step.kind == StepKind::kLoopBegin) loop = step.loop;
    }
  }

  // -1 for a slot that nobody reads.
  int Last(int slot) const { return last_[slot]; }

 private:
  void Note(int slot, int step, int loop) {
    while (loop != plan_.slot_loop[slot] && loop != kNoLoop) {
      step = plan_.loops[loop].end;
      loop = plan_.loops[loop].parent;
    }
    last_[slot] = std::max(last_[slot], step);
  }

  const ExecutionPlan& plan_;
  std::vector<int> last_;
};

}  // namespace

void InsertTaps(std::vector<Tap> taps, ExecutionPlan* plan) {
  std::vector<Step> steps;
  const auto add_taps = [&](int slot) {
    for (Tap& tap : taps) {
      if (tap.slot != slot) continue;
      steps.push_back(std::move(tap.step));
      tap.slot = kNoSlot;
    }
  };
  for (Step& step : plan->steps) {
    const std::vector<int> outputs = step.outputs;
    const int loop = step.kind == StepKind::kLoopBegin ? step.loop : kNoLoop;
    steps.push_back(std::move(step));
    for (int slot : outputs) {
      if (slot != kNoSlot) add_taps(slot);
    }
    if (loop == kNoLoop) continue;
    for (const auto& entry : plan->loops[loop].entries) {
      if (entry.to != kNoSlot) add_taps(entry.to);
    }
  }
  plan->steps = std::move(steps);
}

void NumberLoopSteps(ExecutionPlan* plan) {
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    const Step& step = plan->steps[i];
    if (step.kind == StepKind::kLoopBegin) {
      plan->loops[step.loop].begin = static_cast<int>(i);
    } else if (step.kind == StepKind::kLoopEnd) {
      plan->loops[step.loop].end = static_cast<int>(i);
    }
  }
}

void DropUnreadConstants(ExecutionPlan* plan) {
  std::vector<bool> read(plan->initial.size(), false);
  const auto mark = [&](const std::vector<int>& slots) {
    for (int slot : slots) {
      if (slot != kNoSlot) read[slot] = true;
    }
  };
  for (const Step& step : plan->steps) {
    mark(step.inputs);
    mark(step.controls);
  }
  mark(plan->fetch_slots);
  for (size_t i = 0; i < plan->initial.size(); ++i) {
    if (!read[i]) plan->initial[i] = Tensor();
  }
}

void FoldConstants(const KernelEnvironment& environment, int64_t memory_limit,
                   ExecutionPlan* plan,
                   absl::Span<const absl::string_view> left_ops) {
  std::vector<Tensor>& values = plan->initial;
  int64_t bytes = 0;
  for (const Tensor& value : values) bytes += value.TotalBytes();
  // Weights unpacked from quantized values are four times as large; a few words
  // that unfold into gigabytes are better made when they are needed.
  constexpr int64_t kAlwaysAllowed = int64_t{64} << 20;
  const int64_t allowed =
      std::min(memory_limit, kAlwaysAllowed + 8 * std::min(bytes, kMaxWeights));
  const BudgetScope scope(std::make_shared<MemoryBudget>(allowed));
  std::vector<bool> known(values.size());
  for (size_t i = 0; i < values.size(); ++i) known[i] = values[i].has_value();
  std::vector<Step> left;
  for (Step& step : plan->steps) {
    const bool is_left =
        std::find(left_ops.begin(), left_ops.end(), step.op) != left_ops.end();
    if (!is_left && MayFold(step, known) && AlignInputs(step, plan).ok() &&
        RunStep(*plan, step, environment, values.data(), nullptr).ok()) {
      for (int slot : step.outputs) known[slot] = values[slot].has_value();
      continue;
    }
    if (step.kind != StepKind::kLoopBegin) {
      for (int slot : step.outputs) {
        if (slot != kNoSlot) values[slot] = Tensor();
      }
    }
    left.push_back(std::move(step));
  }
  plan->steps = std::move(left);
  NumberLoopSteps(plan);
  DropUnreadConstants(plan);
}

void PlanLifetimes(bool reuse_buffers, ExecutionPlan* plan) {
  const size_t slots = plan->initial.size();
  plan->keep.assign(slots, false);
  for (size_t i = 0; i < slots; ++i) {
    plan->keep[i] = plan->initial[i].has_value();
    plan->constant_bytes += plan->initial[i].TotalBytes();
    if (!plan->keep[i]) plan->transient.push_back(static_cast<int>(i));
  }
  for (const Step& step : plan->steps) {
    plan->constant_bytes += step.constant_bytes;
  }
  for (int slot : plan->fetch_slots) {
    if (slot != kNoSlot) plan->keep[slot] = true;
  }
  const std::vector<bool> carried = CarriedSlots(*plan);
  const ReadTimes reads(*plan);
  std::vector<bool> released(slots, false);
  const auto release = [&](int slot, Step* step) {
    if (plan->keep[slot] || carried[slot] || released[slot]) return;
    released[slot] = true;
    step->release.push_back(slot);
  };
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    Step& step = plan->steps[i];
    const bool is_border =
        step.kind == StepKind::kLoopBegin || step.kind == StepKind::kLoopEnd;
    step.last_use.assign(step.inputs.size(), false);
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const int slot = step.inputs[k];
      // The same tensor twice is not to be taken over: both are read.
      const bool is_last =
          reads.Last(slot) == static_cast<int>(i) && !plan->keep[slot] &&
          std::count(step.inputs.begin(), step.inputs.end(), slot) == 1;
      step.last_use[k] = reuse_buffers && is_last && !is_border;
    }
    for (int slot : step.outputs) {
      if (slot != kNoSlot && reads.Last(slot) < 0) release(slot, &step);
    }
    if (step.ran != kNoSlot && reads.Last(step.ran) < 0) {
      release(step.ran, &step);
    }
  }
  for (size_t slot = 0; slot < slots; ++slot) {
    const int last = reads.Last(static_cast<int>(slot));
    if (last >= 0) release(static_cast<int>(slot), &plan->steps[last]);
  }
}

}  // namespace optfarm::runtime
