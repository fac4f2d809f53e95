// Walks a plan's steps over one run's values.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTOR_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/runtime/core/run_memory.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/run_options.h"

namespace optfarm::runtime {

// The values of one run. Made once and used for many runs, one at a time.
struct RunState {
  explicit RunState(const ExecutionPlan& plan)
      : slots(plan.initial),
        iterations(plan.loops.size(), 0),
        memory(plan.plans_memory, plan.expected) {}

  std::vector<Tensor> slots;
  // By loop: the number of the iteration that runs.
  std::vector<int64_t> iterations;
  RunMemory memory;
  ScratchPool scratch;
};

// Runs one step other than a loop's border over `slots`; results take memory
// from `memory`, or each its own for nullptr.
// ERRORS: the kernel's, with node and op.
absl::Status RunStep(const ExecutionPlan& plan, const Step& step,
                     const KernelEnvironment& environment, Tensor* slots,
                     RunMemory* memory);

// Runs all steps; feeds are in their slots, and fetches are when it returns.
// ERRORS: a kernel's, with node and op; Cancelled, DeadlineExceeded or
// ResourceExhausted by what `options` bound.
absl::Status Execute(const ExecutionPlan& plan,
                     const KernelEnvironment& environment,
                     const RunOptions& options, RunState* state);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTOR_H_
