#include "engine/runtime/plan/plan_editor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/plan/planner.h"

namespace optfarm::runtime {
namespace {

bool Contains(absl::Span<const int> list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool IsFusible(const Step& step) {
  return (step.kind == StepKind::kKernel || step.kind == StepKind::kForward) &&
         step.is_pure && !step.is_helper && !step.ignores_dead_controls &&
         step.ran == kNoSlot && !step.outputs.empty() &&
         !Contains(step.outputs, kNoSlot);
}

}  // namespace

PlanEditor::PlanEditor(ExecutionPlan* plan, WeightLedger* weights,
                       std::vector<FusedNodes>* taken)
    : plan_(plan),
      weights_(weights),
      taken_(taken),
      is_gone_(plan->steps.size(), false),
      producers_(plan->initial.size(), kNoStep),
      readers_(plan->initial.size()),
      waiting_(plan->initial.size(), 0),
      is_pinned_(plan->initial.size(), false) {
  for (int i = 0; i < step_count(); ++i) {
    NoteReads(i);
    for (int slot : plan->steps[i].outputs) {
      if (slot != kNoSlot) producers_[slot] = i;
    }
  }
  const auto pin = [&](int slot) {
    if (slot != kNoSlot) is_pinned_[slot] = true;
  };
  for (int slot : plan->fetch_slots) pin(slot);
  for (const LoopPlan& loop : plan->loops) {
    for (const LoopPlan::Carry& carry : loop.carries) {
      pin(carry.next);
      pin(carry.current);
    }
    for (const LoopPlan::Entry& entry : loop.entries) pin(entry.to);
    for (int slot : loop.exits) pin(slot);
  }
}

void PlanEditor::NoteReads(int number) {
  const Step& step = plan_->steps[number];
  for (int slot : step.inputs) readers_[slot].push_back(number);
  for (int slot : step.controls) ++waiting_[slot];
}

void PlanEditor::ForgetReads(int number) {
  const Step& step = plan_->steps[number];
  for (int slot : step.inputs) std::erase(readers_[slot], number);
  for (int slot : step.controls) --waiting_[slot];
}

int PlanEditor::OnlyReaderOf(int slot) const {
  return readers_[slot].size() == 1 && waiting_[slot] == 0 && !is_pinned_[slot]
             ? readers_[slot][0]
             : kNoStep;
}

const Tensor* PlanEditor::ConstantOf(int slot) const {
  const Tensor& value = plan_->initial[slot];
  return value.has_value() && producers_[slot] == kNoStep ? &value : nullptr;
}

std::shared_ptr<SharedWeights> PlanEditor::WeightsOf(const Tensor& constant) {
  std::shared_ptr<PlannedWeights>& known = plan_->weights[constant.raw()];
  if (known == nullptr) {
    known = std::make_shared<PlannedWeights>(
        PlannedWeights{constant, std::make_shared<SharedWeights>(constant)});
  }
  // Of another type the same bytes are other weights.
  return known->weights->IsLike(constant)
             ? known->weights
             : std::make_shared<SharedWeights>(constant);
}

absl::StatusOr<PackedWeights> PlanEditor::Pack(const Tensor& constant,
                                               WeightLayout layout,
                                               int64_t* bytes) {
  PackedWeights packed(WeightsOf(constant), std::move(layout));
  OPTFARM_ASSIGN_OR_RETURN(*bytes, weights_->Add(packed));
  return packed;
}

bool PlanEditor::IsVisible(int slot, absl::Span<const int> members) const {
  if (is_pinned_[slot] || waiting_[slot] > 0) return true;
  return std::any_of(readers_[slot].begin(), readers_[slot].end(),
                     [&](int reader) { return !Contains(members, reader); });
}

bool PlanEditor::MayFuse(absl::Span<const int> members,
                         absl::Span<const int> outputs) const {
  const int last = members.back();
  for (int number : members) {
    const Step& step = plan_->steps[number];
    if (is_gone_[number] || !IsFusible(step)) return false;
    if (plan_->slot_loop[step.outputs[0]] !=
        plan_->slot_loop[plan_->steps[last].outputs[0]]) {
      return false;
    }
    for (int slot : step.outputs) {
      if (!Contains(outputs, slot) && IsVisible(slot, members)) return false;
      // Who waits for it may come before the last.
      if (number != last && waiting_[slot] > 0) return false;
    }
  }
  // Who reads a result comes after all of them.
  for (int slot : outputs) {
    for (int reader : readers_[slot]) {
      if (reader < last && !Contains(members, reader)) return false;
    }
  }
  return true;
}

StepChain PlanEditor::TakeChain(absl::Span<const int> members,
                                absl::Span<const int> inputs,
                                absl::Span<const int> outputs,
                                std::vector<ChainConstant> restored,
                                bool with_controls) {
  std::vector<ChainConstant> constants = std::move(restored);
  std::vector<Step> steps;
  for (int number : members) {
    Step& step = plan_->steps[number];
    for (int slot : step.inputs) {
      const bool is_known =
          Contains(inputs, slot) ||
          std::any_of(constants.begin(), constants.end(),
                      [&](const ChainConstant& c) { return c.slot == slot; });
      const Tensor* value = ConstantOf(slot);
      if (!is_known && value != nullptr) {
        constants.push_back({slot, *value, nullptr});
      }
    }
    Step link;
    link.name = step.name;
    link.op = step.op;
    link.kernel = std::move(step.kernel);
    link.inputs = step.inputs;
    if (with_controls) link.controls = step.controls;
    link.outputs = step.outputs;
    steps.push_back(std::move(link));
  }
  return StepChain(std::move(steps), inputs, outputs, std::move(constants));
}

std::unique_ptr<Kernel> PlanEditor::TakeKernel(int number) {
  return std::move(plan_->steps[number].kernel);
}

void PlanEditor::AddInput(int number, int slot) {
  plan_->steps[number].inputs.push_back(slot);
  readers_[slot].push_back(number);
}

void PlanEditor::HoldOther(int slot) {
  plan_->slot_tensors[slot] = {graph::kNoNode, 0};
}

void PlanEditor::Fuse(absl::Span<const int> members, FusedStep fused) {
  Step made;
  std::vector<int> inner;
  for (int number : members) {
    const Step& step = plan_->steps[number];
    ForgetReads(number);
    is_gone_[number] = true;
    absl::StrAppend(&made.op, made.op.empty() ? "" : "+", step.op);
    const std::vector<std::string>& names = step.fused_names;
    if (names.empty()) {
      made.fused_names.push_back(step.name);
    } else {
      made.fused_names.insert(made.fused_names.end(), names.begin(),
                              names.end());
    }
    made.constant_bytes += step.constant_bytes;
    inner.insert(inner.end(), step.outputs.begin(), step.outputs.end());
    for (int slot : step.controls) {
      if (!fused.takes_dead_inputs && !Contains(inner, slot) &&
          !Contains(made.controls, slot)) {
        made.controls.push_back(slot);
      }
    }
  }
  const int last = members.back();
  for (int slot : inner) producers_[slot] = kNoStep;
  made.name = plan_->steps[last].name;
  if (made.fused_names.size() == 1) made.fused_names.clear();
  made.kernel = std::move(fused.kernel);
  made.takes_dead_inputs = fused.takes_dead_inputs;
  made.inputs = std::move(fused.inputs);
  made.outputs = std::move(fused.outputs);
  made.constant_bytes += fused.constant_bytes;
  plan_->steps[last] = std::move(made);
  is_gone_[last] = false;
  NoteReads(last);
  for (int slot : plan_->steps[last].outputs) producers_[slot] = last;
  NoteChange(last);
}

bool PlanEditor::MayDrop(int number) const {
  const Step& step = plan_->steps[number];
  return !is_gone_[number] && IsFusible(step) &&
         std::none_of(step.outputs.begin(), step.outputs.end(),
                      [&](int slot) { return IsVisible(slot, {}); });
}

void PlanEditor::Drop(int number) {
  ForgetReads(number);
  is_gone_[number] = true;
  for (int slot : plan_->steps[number].outputs) producers_[slot] = kNoStep;
}

void PlanEditor::NoteChange(int number) {
  if (taken_ == nullptr) return;
  const Step& step = plan_->steps[number];
  FusedNodes& nodes = taken_->emplace_back();
  nodes.nodes = step.fused_names;
  if (nodes.nodes.empty()) nodes.nodes = {step.name};
  nodes.step = step.name;
  nodes.op = step.op;
}

void PlanEditor::Finish() {
  std::vector<Step> left;
  for (int i = 0; i < step_count(); ++i) {
    if (!is_gone_[i]) left.push_back(std::move(plan_->steps[i]));
  }
  plan_->steps = std::move(left);
  NumberLoopSteps(plan_);
  DropUnreadConstants(plan_);
}

}  // namespace optfarm::runtime
