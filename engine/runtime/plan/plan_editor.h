// How a fusion looks at a plan and makes several steps one.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_EDITOR_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_EDITOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/fused_nodes.h"
#include "engine/runtime/plan/step_chain.h"
#include "engine/runtime/plan/weight_ledger.h"

namespace optfarm::runtime {

// Where there is no step.
inline constexpr int kNoStep = -1;

// What takes the place of several steps.
struct FusedStep {
  std::unique_ptr<Kernel> kernel;
  // Slots read and written, in the order of the kernel's inputs and outputs.
  std::vector<int> inputs;
  std::vector<int> outputs;
  // UNITS: bytes of the weights that the kernel holds.
  int64_t constant_bytes = 0;
  // See Step; what the members wait for is among the inputs then.
  bool takes_dead_inputs = false;
};

// Steps keep their numbers while the editor lives.
class PlanEditor {
 public:
  // `taken` receives each step that gets another kernel, without the fusion's
  // name; nullptr: nobody asks. OWNERSHIP: the caller's; all of them outlive
  // the editor.
  PlanEditor(ExecutionPlan* plan, WeightLedger* weights,
             std::vector<FusedNodes>* taken = nullptr);

  int step_count() const { return static_cast<int>(plan_->steps.size()); }
  // nullptr for a step that became part of another.
  const Step* step(int number) const {
    return is_gone_[number] ? nullptr : &plan_->steps[number];
  }
  // The step that writes a slot; kNoStep for feeds and constants.
  int ProducerOf(int slot) const { return producers_[slot]; }
  // The one step that reads a slot; kNoStep when there is none or several, or
  // when the value has to be there for another reason: it is fetched, waited
  // for, or goes into the next iteration.
  int OnlyReaderOf(int slot) const;
  // All steps that read a slot; one that reads it twice is there twice.
  const std::vector<int>& ReadersOf(int slot) const { return readers_[slot]; }
  // The value of a slot that never changes; nullptr for any other.
  const Tensor* ConstantOf(int slot) const;
  // The loop whose iterations make the value.
  int LoopOf(int slot) const { return plan_->slot_loop[slot]; }

  // A constant that ConstantOf gave, to be packed when a run first needs it:
  // once for all steps, and for all sessions over a model where it is the
  // model's. `bytes` is the size of the packed form, 0 when it was asked for
  // before. ERRORS: WeightLedger::Add's.
  absl::StatusOr<PackedWeights> Pack(const Tensor& constant,
                                     WeightLayout layout, int64_t* bytes);
  // What may be done with weights that Pack gave.
  WeightLedger& weights() { return *weights_; }

  // Whether anybody but the members sees the value of a slot.
  bool IsVisible(int slot, absl::Span<const int> members) const;

  // Whether `members` can become one step that gives `outputs` where the last
  // of them stands: nothing else is seen by anybody.
  // REQUIRES: members ascend.
  bool MayFuse(absl::Span<const int> members,
               absl::Span<const int> outputs) const;

  // Takes the kernels out of steps that are about to be fused. `restored`
  // constants are not kept (step_chain.h); all others that the members read
  // are. `with_controls`: links wait for what the members do, which is among
  // the inputs. REQUIRES: MayFuse(members, fused outputs); Fuse follows.
  StepChain TakeChain(absl::Span<const int> members,
                      absl::Span<const int> inputs,
                      absl::Span<const int> outputs,
                      std::vector<ChainConstant> restored = {},
                      bool with_controls = false);

  // The kernel of a step that is about to be fused as it is.
  std::unique_ptr<Kernel> TakeKernel(int number);
  // Has a step read one more slot, behind its others. REQUIRES: the slot is
  // written before the step.
  void AddInput(int number, int slot);
  // The slot holds something else than the graph's tensor from now on.
  void HoldOther(int slot);

  // Puts `fused` in the place of the last member. Its name is the last
  // member's, its op all their ops with '+' between.
  // REQUIRES: MayFuse(members, fused.outputs).
  void Fuse(absl::Span<const int> members, FusedStep fused);

  // Whether nobody sees what a step makes, and nothing else comes of it.
  bool MayDrop(int number) const;
  // REQUIRES: MayDrop(number).
  void Drop(int number);

  // Says that a fusion told the kernel of a step to work otherwise.
  void NoteChange(int number);

  // Drops the steps that are gone. The last call.
  void Finish();

 private:
  void ForgetReads(int number);
  void NoteReads(int number);
  std::shared_ptr<SharedWeights> WeightsOf(const Tensor& constant);

  ExecutionPlan* plan_;
  WeightLedger* weights_;
  std::vector<FusedNodes>* taken_;
  std::vector<bool> is_gone_;
  // By slot.
  std::vector<int> producers_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> waiting_;
  std::vector<bool> is_pinned_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_EDITOR_H_
