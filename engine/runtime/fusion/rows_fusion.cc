// A layer on the rows of a tensor of more dimensions: the reshapes before and
// after it move nothing, but each is a step. Sequences pass through several of
// them in each block of a transformer.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/fusion/families.h"
#include "engine/runtime/fusion/kernel_role.h"
#include "engine/runtime/operators/next_weights.h"

namespace optfarm::runtime {
namespace {

struct RowsLayer {
  // Of a row.
  int64_t depth = 0;
  std::unique_ptr<Kernel> before, layer, after;
  // The sizes that `before` reads.
  Tensor sizes;
  // By input of `after` but the first: which of the kernel's.
  std::vector<int> others;
};

// Input 0 becomes rows; the result is that of the last reshape.
class RowsKernel final : public Kernel, public WeightReader {
 public:
  explicit RowsKernel(RowsLayer layer)
      : l_(std::move(layer)), reader_(RoleOf<WeightReader>(l_.layer.get())) {}

  absl::Status Compute(KernelContext* context) const override {
    Tensor rows;
    OPTFARM_RETURN_IF_ERROR(FindRows(context, &rows));
    absl::InlinedVector<Tensor, 4> inputs(1);
    OPTFARM_RETURN_IF_ERROR(
        Run(*l_.layer, *context, absl::MakeSpan(&rows, 1), &inputs[0]));
    for (int input : l_.others) inputs.push_back(context->input(input));
    Tensor result;
    OPTFARM_RETURN_IF_ERROR(
        Run(*l_.after, *context, absl::MakeSpan(inputs), &result));
    context->SetOutput(0, std::move(result));
    return absl::OkStatus();
  }

  FirstWeights First() const override { return reader_->First(); }
  void SetNext(FirstWeights next) override {
    reader_->SetNext(std::move(next));
  }

 private:
  static absl::Status Run(const Kernel& kernel, const KernelContext& context,
                          absl::Span<Tensor> inputs, Tensor* output) {
    KernelContext own = context.WithTensors(inputs, absl::MakeSpan(output, 1));
    return kernel.Compute(&own);
  }

  absl::Status FindRows(KernelContext* context, Tensor* rows) const {
    const Tensor& x = context->input(0);
    if (x.rank() > 0 && x.dim(x.rank() - 1) == l_.depth) {
      *rows = x.Reshaped(Shape({x.num_elements() / l_.depth, l_.depth}));
      return absl::OkStatus();
    }
    Tensor inputs[] = {x, l_.sizes};
    return Run(*l_.before, *context, absl::MakeSpan(inputs), rows);
  }

  const RowsLayer l_;
  WeightReader* const reader_;
};

// The size of a row that a reshape to [-1, depth] makes.
std::optional<int64_t> DepthOfRows(const PlanEditor& plan, const Step& step) {
  if (step.node == nullptr || !graph::IsReshape(step.op) ||
      step.inputs.size() != 2) {
    return std::nullopt;
  }
  const Tensor* sizes = plan.ConstantOf(step.inputs[1]);
  if (sizes == nullptr || sizes->rank() != 1 || sizes->num_elements() != 2) {
    return std::nullopt;
  }
  const auto values = sizes->AsInt64s();
  if (!values.ok() || (*values)[0] != -1 || (*values)[1] < 1) {
    return std::nullopt;
  }
  return (*values)[1];
}

void FuseLayer(int number, PlanEditor* plan) {
  const Step& layer = *plan->step(number);
  if (layer.inputs.size() != 1 || layer.outputs.size() != 1 ||
      RoleOf<WeightReader>(layer.kernel.get()) == nullptr) {
    return;
  }
  const int before = plan->ProducerOf(layer.inputs[0]);
  const int after = plan->OnlyReaderOf(layer.outputs[0]);
  if (before == kNoStep || after == kNoStep || plan->step(before) == nullptr ||
      plan->OnlyReaderOf(layer.inputs[0]) != number) {
    return;
  }
  const Step& reshape = *plan->step(after);
  const auto depth = DepthOfRows(*plan, *plan->step(before));
  const std::vector<int> members = {before, number, after};
  if (!depth.has_value() || !graph::IsReshape(reshape.op) ||
      reshape.inputs[0] != layer.outputs[0] ||
      std::count(reshape.inputs.begin(), reshape.inputs.end(),
                 layer.outputs[0]) != 1 ||
      !plan->MayFuse(members, reshape.outputs)) {
    return;
  }
  FusedStep fused;
  fused.inputs = {plan->step(before)->inputs[0]};
  fused.outputs = reshape.outputs;
  RowsLayer rows;
  rows.depth = *depth;
  rows.sizes = *plan->ConstantOf(plan->step(before)->inputs[1]);
  for (size_t i = 1; i < reshape.inputs.size(); ++i) {
    const auto found =
        std::find(fused.inputs.begin(), fused.inputs.end(), reshape.inputs[i]);
    rows.others.push_back(static_cast<int>(found - fused.inputs.begin()));
    if (found == fused.inputs.end()) fused.inputs.push_back(reshape.inputs[i]);
  }
  rows.before = plan->TakeKernel(before);
  rows.layer = plan->TakeKernel(number);
  rows.after = plan->TakeKernel(after);
  fused.kernel = std::make_unique<RowsKernel>(std::move(rows));
  plan->Fuse(members, std::move(fused));
}

void FuseRows(const CpuFeatures&, PlanEditor* plan) {
  for (int i = 0; i < plan->step_count(); ++i) {
    if (plan->step(i) != nullptr) FuseLayer(i, plan);
  }
}

}  // namespace

const Fusion kRowsFusion = {
    .name = "rows",
    .pattern = "Reshape to [-1, depth], a layer with packed weights, Reshape",
    .replacement = "the layer on the rows of a tensor of any rank",
    .run = FuseRows,
};

}  // namespace optfarm::runtime
