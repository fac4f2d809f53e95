#include "engine/runtime/plan_constants.h"

#include <memory>
#include <utility>

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
  bool is_mapped = false;
  absl::StatusOr<Tensor> value =
      ReadImmutableConst(node.def(), request.options.find_region, &is_mapped);
  if (!value.ok()) {
    return Annotate(value.status(), DescribeNode(node.name(), node.op()));
  }
  const LoadedModel* model = ModelOf(id, request);
  NoteWeights(*value,
              model != nullptr
                  ? model->WeightsAt(id, *value, is_mapped)
                  : std::make_shared<SharedWeights>(*value, is_mapped),
              plan);
  return value;
}

}  // namespace optfarm::runtime
