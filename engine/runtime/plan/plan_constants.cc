#include "engine/runtime/plan/plan_constants.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

// The model that has the node; nullptr for none. Calls that were inlined bring
// nodes that the model does not have.
const LoadedModel* ModelOf(graph::NodeId id, const PlanRequest& request) {
  const LoadedModel* model = request.model;
  return model != nullptr && id < model->graph().id_limit() ? model : nullptr;
}

void NoteWeights(const Tensor& value, std::shared_ptr<SharedWeights> weights,
                 ExecutionPlan* plan) {
  plan->weights[value.raw()] = std::make_shared<PlannedWeights>(
      PlannedWeights{value, std::move(weights)});
}

// Slots that are read as weights by layers alone, and bytes, which stand
// nowhere wrong.
std::vector<bool> PackableSlots(const ExecutionPlan& plan) {
  std::vector<bool> packable(plan.initial.size(), true);
  for (const Step& step : plan.steps) {
    const bool is_layer = step.kind == StepKind::kKernel &&
                          (step.op == "Conv2D" || step.op == "MatMul");
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const int slot = step.inputs[k];
      if ((is_layer && k == 1) || ElementSize(plan.initial[slot].dtype()) == 1)
        continue;
      packable[slot] = false;
    }
  }
  return packable;
}

}  // namespace

absl::StatusOr<Tensor> ConstValue(const graph::Graph& graph, graph::NodeId id,
                                  const PlanRequest& request,
                                  ExecutionPlan* plan) {
  const graph::Node& node = graph.node(id);
  absl::StatusOr<Tensor> value;
  if (const LoadedModel* model = ModelOf(id, request)) {
    const auto& weights = model->WeightsOf(id);
    value = weights.ok() ? (*weights)->Value() : weights.status();
    if (value.ok()) NoteWeights(*value, *weights, plan);
  } else {
    absl::StatusOr<const tensorflow::TensorProto*> proto =
        graph::GetTensor(node.def(), "value");
    if (!proto.ok()) return proto.status();
    value = Tensor::FromProto(**proto);
  }
  if (!value.ok()) {
    return Annotate(value.status(), DescribeNode(node.name(), node.op()));
  }
  return value;
}

absl::StatusOr<Tensor> ImmutableConstValue(const graph::Graph& graph,
                                           graph::NodeId id,
                                           const PlanRequest& request,
                                           ExecutionPlan* plan) {
  const graph::Node& node = graph.node(id);
  absl::string_view file;
  absl::StatusOr<Tensor> value =
      ReadImmutableConst(node.def(), request.options.find_region, &file);
  if (!value.ok()) {
    return Annotate(value.status(), DescribeNode(node.name(), node.op()));
  }
  const LoadedModel* model = ModelOf(id, request);
  NoteWeights(*value,
              model != nullptr ? model->WeightsAt(id, *value, file)
                               : std::make_shared<SharedWeights>(*value, file),
              plan);
  return value;
}

absl::Status AlignConstant(int slot, ExecutionPlan* plan) {
  Tensor& value = plan->initial[slot];
  if (!value.has_value() || IsAligned(value)) return absl::OkStatus();
  const std::shared_ptr<PlannedWeights> planned = plan->weights[value.raw()];
  OPTFARM_CHECK(planned != nullptr);
  OPTFARM_ASSIGN_OR_RETURN(const Tensor aligned, planned->weights->Value());
  // Who packs it later finds it here as well.
  plan->weights[aligned.raw()] = std::make_shared<PlannedWeights>(
      PlannedWeights{aligned, planned->weights});
  value = aligned.Reshaped(value.shape());
  return absl::OkStatus();
}

absl::Status AlignConstants(bool packed_later, ExecutionPlan* plan) {
  std::vector<bool> stays(plan->initial.size(), false);
  if (packed_later) stays = PackableSlots(*plan);
  for (size_t i = 0; i < plan->initial.size(); ++i) {
    if (stays[i]) continue;
    OPTFARM_RETURN_IF_ERROR(AlignConstant(static_cast<int>(i), plan));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::runtime
