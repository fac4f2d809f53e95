// The steps that a fused step stands for, kept to be run one after the other
// when its fast kernel does not serve the inputs that came: the reference
// kernels then compute the result, or say what is wrong.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_STEP_CHAIN_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_STEP_CHAIN_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/plan/execution_plan.h"

namespace optfarm::runtime {

// A constant that the steps read. `restore` makes it again where the value
// itself is not kept, because it is there in packed form.
struct ChainConstant {
  int slot = kNoSlot;
  Tensor value;
  std::function<absl::StatusOr<Tensor>()> restore;
};

class StepChain {
 public:
  StepChain() = default;
  // Takes the kernels of `steps`, which are in the order of execution, and
  // reads and writes their slots: `inputs` are those of the fused step,
  // `outputs` what it gives, both in its order.
  // REQUIRES: each slot that a step reads or waits for is an input, a constant,
  // or written by a step before.
  StepChain(std::vector<Step> steps, absl::Span<const int> inputs,
            absl::Span<const int> outputs,
            std::vector<ChainConstant> constants);

  // Computes the outputs of `context` from its inputs. What comes from a dead
  // input is dead.
  // ERRORS: the kernels' own, with node and op.
  absl::Status Run(KernelContext* context) const;

 private:
  struct Link {
    // nullptr hands the input on.
    std::unique_ptr<Kernel> kernel;
    std::string name;
    std::string op;
    std::vector<int> inputs;
    std::vector<int> controls;
    std::vector<int> outputs;
  };

  // Slots are numbered anew: inputs first.
  int value_count_ = 0;
  std::vector<Link> links_;
  std::vector<ChainConstant> constants_;
  std::vector<int> outputs_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_STEP_CHAIN_H_
