// Softmax on floats, with the bias before it.

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/ukernels/float/softmax.h"
#include "engine/runtime/ukernels/micro_kernel_catalog.h"

namespace optfarm::runtime {
namespace {

// Input 0 are the logits, input 1 is the bias where there is one.
class SoftmaxKernel final : public Kernel {
 public:
  // `least_rank` is that of logits that the steps take.
  SoftmaxKernel(SoftmaxFunction run, int least_rank, StepChain chain)
      : run_(run), least_rank_(least_rank), chain_(std::move(chain)) {}

  absl::Status Compute(KernelContext* context) const override {
    const Tensor& logits = context->input(0);
    if (logits.dtype() != tensorflow::DT_FLOAT || logits.rank() < least_rank_) {
      return chain_.Run(context);
    }
    const int64_t columns = logits.dim(logits.rank() - 1);
    SoftmaxRows all;
    all.columns = columns;
    if (context->num_inputs() > 1) {
      const Tensor& bias = context->input(1);
      if (bias.dtype() != tensorflow::DT_FLOAT || bias.rank() != 1 ||
          bias.dim(0) != columns) {
        return chain_.Run(context);
      }
      all.bias = bias.data<float>();
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor * out,
                             context->ForwardOrAllocateOutput(
                                 0, 0, tensorflow::DT_FLOAT, logits.shape()));
    if (logits.num_elements() == 0) return absl::OkStatus();
    all.in = logits.data<float>();
    all.out = out->data<float>();
    // UNITS: elements that are worth another thread.
    constexpr int64_t kGrain = 16 * 1024;
    context->pool()->ParallelFor(logits.num_elements() / columns,
                                 1 + kGrain / columns,
                                 [&](int64_t begin, int64_t end) {
                                   SoftmaxRows some = all;
                                   some.in += begin * columns;
                                   some.out += begin * columns;
                                   some.rows = end - begin;
                                   run_(some);
                                 });
    return absl::OkStatus();
  }

 private:
  const SoftmaxFunction run_;
  const int least_rank_;
  const StepChain chain_;
};

// A step that adds a vector to each row of a value.
struct RowBias {
  int value = kNoSlot;
  int bias = kNoSlot;
  // Of the values that it takes.
  int least_rank = 1;
};

// What `step` adds; no slots when it does something else.
RowBias ReadRowBias(const PlanEditor& plan, const Step& step) {
  RowBias row;
  if (step.inputs.size() != 2 || step.inputs[0] == step.inputs[1]) return row;
  if (!graph::IsSumOrBias(step.op) || !ComputesFloats(step)) return row;
  if (!graph::IsSum(step.op)) {
    if (!graph::IsNhwc(*step.node)) return row;
    return {step.inputs[0], step.inputs[1], 2};
  }
  for (int i : {0, 1}) {
    const Tensor* constant = plan.ConstantOf(step.inputs[i]);
    if (constant != nullptr && constant->rank() == 1) {
      return {step.inputs[1 - i], step.inputs[i], 1};
    }
  }
  return row;
}

void ReplaceSoftmax(SoftmaxFunction run, int number, PlanEditor* plan) {
  const Step& step = *plan->step(number);
  if (step.inputs.size() != 1) return;
  std::vector<int> members = {number};
  FusedStep fused;
  fused.inputs = step.inputs;
  fused.outputs = step.outputs;
  int least_rank = 1;
  const int before = plan->ProducerOf(step.inputs[0]);
  if (before != kNoStep && plan->step(before) != nullptr &&
      plan->OnlyReaderOf(step.inputs[0]) == number &&
      plan->MayFuse({before, number}, step.outputs)) {
    const RowBias row = ReadRowBias(*plan, *plan->step(before));
    if (row.value != kNoSlot) {
      members = {before, number};
      fused.inputs = {row.value, row.bias};
      least_rank = row.least_rank;
    }
  }
  if (!plan->MayFuse(members, fused.outputs)) return;
  fused.kernel = std::make_unique<SoftmaxKernel>(
      run, least_rank, plan->TakeChain(members, fused.inputs, fused.outputs));
  plan->Fuse(members, std::move(fused));
}

void FuseSoftmaxes(const CpuFeatures& cpu, PlanEditor* plan) {
  const SoftmaxFunction run =
      SelectFunctions(&MicroKernelFunction::softmax, cpu);
  if (run == nullptr) return;
  for (int i = 0; i < plan->step_count(); ++i) {
    if (IsFloatNode(plan->step(i), "Softmax")) ReplaceSoftmax(run, i, plan);
  }
}

}  // namespace

const Fusion kSoftmaxFusion = {
    .name = "softmax",
    .pattern = "[BiasAdd or Add of a vector] Softmax",
    .replacement = "a softmax that adds the bias and sums row by row",
    .run = FuseSoftmaxes,
};

}  // namespace optfarm::runtime
