#include "engine/runtime/core/loaded_model.h"

#include <utility>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"

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
    if (!graph::IsConst(model->graph_.node(id).op())) continue;
    tensorflow::NodeDef* def = model->graph_.mutable_node(id)->mutable_def();
    absl::StatusOr<Tensor> value = Decode(*def);
    if (!value.ok()) {
      def->mutable_attr()->erase("value");
      model->values_[id] = value.status();
      continue;
    }
    const int64_t bytes = value->TotalBytes();
    model->value_bytes_ += bytes;
    if (bytes > kSmallBytes) DropElements(def);
    model->values_[id] = std::make_shared<SharedWeights>(*std::move(value));
  }
  return model;
}

std::shared_ptr<SharedWeights> LoadedModel::WeightsAt(
    graph::NodeId id, const Tensor& value,
    absl::string_view mapped_file) const {
  absl::MutexLock lock(&mutex_);
  Region& region = regions_[id];
  if (region.data == value.raw() && region.weights->IsLike(value)) {
    return region.weights;
  }
  auto made = std::make_shared<SharedWeights>(value, mapped_file);
  if (region.data == nullptr) region = {value.raw(), made};
  return made;
}

}  // namespace optfarm::runtime
