#include "engine/runtime/loaded_model.h"

#include <utility>

#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

// UNITS: bytes. Whole numbers of more than a thousand elements are never looked
// at for shapes (graph/shape_inference.h).
constexpr int64_t kSmallBytes = 8 * 1000;

// Leaves type and shape.
void DropElements(tensorflow::NodeDef* node) {
  tensorflow::TensorProto* value =
      (*node->mutable_attr())["value"].mutable_tensor();
  tensorflow::TensorProto without;
  without.set_dtype(value->dtype());
  without.mutable_tensor_shape()->Swap(value->mutable_tensor_shape());
  value->Swap(&without);
}

absl::StatusOr<Tensor> Decode(const tensorflow::NodeDef& node) {
  const absl::StatusOr<const tensorflow::TensorProto*> proto =
      graph::GetTensor(node, "value");
  if (!proto.ok()) return proto.status();
  return Tensor::FromProto(**proto);
}

}  // namespace

std::shared_ptr<const LoadedModel> LoadedModel::Create(graph::Graph graph) {
  std::shared_ptr<LoadedModel> model(new LoadedModel(std::move(graph)));
  model->values_.assign(
      model->graph_.id_limit(),
      absl::FailedPreconditionError("the node is not a constant"));
  for (graph::NodeId id : model->graph_.Ids()) {
    if (model->graph_.node(id).op() != "Const") continue;
    tensorflow::NodeDef* def = model->graph_.mutable_node(id)->mutable_def();
    absl::StatusOr<Tensor>& value = model->values_[id];
    value = Decode(*def);
    if (value.ok()) {
      model->value_bytes_ += value->TotalBytes();
      if (value->TotalBytes() > 0) model->buffers_.insert(value->raw());
    }
    if (!value.ok()) {
      def->mutable_attr()->erase("value");
    } else if (value->TotalBytes() > kSmallBytes) {
      DropElements(def);
    }
  }
  return model;
}

absl::StatusOr<Tensor> LoadedModel::ValueOf(graph::NodeId id) const {
  return values_[id];
}

}  // namespace optfarm::runtime
