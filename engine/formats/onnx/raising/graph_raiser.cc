#include "engine/formats/onnx/raising/graph_raiser.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/formats/onnx/raising/number_bytes.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::formats {

using graph::Endpoint;
using graph::NodeId;
using tensorflow::DataType;

int64_t GraphConstant::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// --- What the graph says -----------------------------------------------------

DataType GraphRaiser::TypeOf(Endpoint tensor) const {
  const graph::Node& node = graph_.node(tensor.node);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*op_def, node.def());
  if (!types.ok() || tensor.port < 0 ||
      static_cast<size_t>(tensor.port) >= types->size()) {
    return tensorflow::DT_INVALID;
  }
  return graph::BaseType((*types)[static_cast<size_t>(tensor.port)]);
}

Endpoint GraphRaiser::Behind(Endpoint tensor) const {
  for (int i = 0; i < graph_.id_limit(); ++i) {
    const graph::Node& node = graph_.node(tensor.node);
    const bool passes_on =
        graph::IsForwarding(node.op()) || node.op() == "CheckNumerics";
    if (!passes_on || node.inputs().empty()) break;
    tensor = node.inputs()[0];
  }
  return tensor;
}

const GraphRaiser::HeldConstant* GraphRaiser::Decode(NodeId id) {
  const auto found = constants_.find(id);
  if (found != constants_.end()) return found->second.get();
  std::unique_ptr<HeldConstant>& held = constants_[id];
  const auto proto = graph::GetTensor(graph_.node(id).def(), "value");
  if (!proto.ok()) return nullptr;
  absl::StatusOr<runtime::Tensor> tensor = runtime::Tensor::FromProto(**proto);
  if (!tensor.ok() || OnnxTypeOf(tensor->dtype()) == 0) return nullptr;
  held = std::make_unique<HeldConstant>();
  held->tensor = *std::move(tensor);
  held->constant.type = held->tensor.dtype();
  held->constant.dims.assign(held->tensor.shape().dims().begin(),
                             held->tensor.shape().dims().end());
  held->constant.bytes =
      absl::string_view(static_cast<const char*>(held->tensor.raw()),
                        static_cast<size_t>(held->tensor.TotalBytes()));
  return held.get();
}

const GraphConstant* GraphRaiser::ConstantOf(Endpoint tensor) {
  tensor = Behind(tensor);
  if (!graph::IsConst(graph_.node(tensor.node).op()) || tensor.port != 0) {
    return nullptr;
  }
  const HeldConstant* held = Decode(tensor.node);
  return held == nullptr ? nullptr : &held->constant;
}

std::optional<std::vector<int64_t>> GraphRaiser::IntegersOf(Endpoint tensor) {
  if (const GraphConstant* constant = ConstantOf(tensor)) {
    return IntegersFromBytes(constant->type, constant->bytes);
  }
  const graph::PartialValue* value = shapes_.ValueOf(tensor);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> elements;
  for (const std::optional<int64_t>& element : value->elements) {
    if (!element.has_value()) return std::nullopt;
    elements.push_back(*element);
  }
  return elements;
}

std::optional<std::vector<float>> GraphRaiser::FloatsOf(Endpoint tensor) {
  const GraphConstant* constant = ConstantOf(tensor);
  if (constant == nullptr || constant->type != tensorflow::DT_FLOAT) {
    return std::nullopt;
  }
  std::vector<float> floats(constant->bytes.size() / sizeof(float));
  std::memcpy(floats.data(), constant->bytes.data(),
              floats.size() * sizeof(float));
  return floats;
}

NodeId GraphRaiser::OnlyReaderOf(Endpoint tensor) const {
  if (outputs_.contains(tensor)) return graph::kNoNode;
  const std::vector<graph::Use> uses = graph_.UsesOf(tensor);
  return uses.size() == 1 ? uses[0].consumer : graph::kNoNode;
}

// --- What the model has ------------------------------------------------------

void GraphRaiser::Set(Endpoint tensor, ValueId value, AxisOrder order) {
  raised_[tensor] = {value, Simplified(std::move(order))};
}

bool GraphRaiser::IsSet(Endpoint tensor) const {
  return raised_.contains(tensor);
}

AxisOrder GraphRaiser::OrderOf(Endpoint tensor) const {
  const auto found = raised_.find(tensor);
  return found == raised_.end() ? AxisOrder() : found->second.order;
}

ValueId GraphRaiser::AddGraphConstant(Endpoint tensor, const AxisOrder& order,
                                      std::vector<int64_t> dims) {
  const GraphConstant& constant = *ConstantOf(tensor);
  const auto size = static_cast<size_t>(graph::ElementBytes(constant.type));
  return model_->AddConstant(
      constant.type, std::move(dims),
      PermutedBytes(constant.bytes, constant.dims, order, size),
      graph_.NameOf(Behind(tensor)));
}

// Weights that are stored as 16-bit floats.
bool GraphRaiser::IsWidening(const graph::Node& node) const {
  return graph::IsCast(node.op()) && node.inputs().size() == 1 &&
         TypeOf(node.inputs()[0]) == tensorflow::DT_HALF &&
         graph::GetType(node.def(), "DstT").value_or(tensorflow::DT_INVALID) ==
             tensorflow::DT_FLOAT;
}

ValueId GraphRaiser::ConstantOfRank(Endpoint tensor,
                                    const std::vector<int64_t>& dims,
                                    const AxisOrder& order) {
  const GraphConstant& constant = *ConstantOf(tensor);
  const auto size = static_cast<size_t>(graph::ElementBytes(constant.type));
  return model_->AddConstant(constant.type, Permuted(dims, order),
                             PermutedBytes(constant.bytes, dims, order, size),
                             graph_.NameOf(Behind(tensor)));
}

const graph::Node* GraphRaiser::DequantizedConstant(Endpoint tensor) {
  const graph::Node& node = graph_.node(Behind(tensor).node);
  const bool is_dequantized =
      graph::IsDequantizeLinear(node.op()) && node.inputs().size() == 3;
  if (!is_dequantized && !IsWidening(node)) return nullptr;
  for (const Endpoint& input : node.inputs()) {
    if (ConstantOf(input) == nullptr) return nullptr;
  }
  return &node;
}

bool GraphRaiser::IsConstantLike(Endpoint tensor) {
  return ConstantOf(tensor) != nullptr ||
         DequantizedConstant(tensor) != nullptr;
}

ValueId GraphRaiser::ConstantAs(Endpoint tensor, const AxisOrder& order,
                                std::vector<int64_t> dims, int channel_axis) {
  if (ConstantOf(tensor) != nullptr) {
    return AddGraphConstant(tensor, order, std::move(dims));
  }
  const graph::Node* node = DequantizedConstant(tensor);
  if (node == nullptr) return kNoValue;
  if (graph::IsCast(node->op())) {
    const ValueId narrow =
        AddGraphConstant(node->inputs()[0], order, std::move(dims));
    return model_->AddNode("Cast", {narrow}, 1,
                           {{"to", int64_t{OnnxTypeOf(tensorflow::DT_FLOAT)}}},
                           node->name())[0];
  }
  const GraphConstant& scale = *ConstantOf(node->inputs()[1]);
  std::vector<OnnxAttribute> attributes;
  if (scale.elements() != 1) {
    attributes.push_back({"axis", int64_t{channel_axis}});
  }
  // One number is a scalar, whatever rank it has in the graph.
  const std::vector<int64_t> parameter_dims =
      scale.elements() == 1 ? std::vector<int64_t>()
                            : std::vector<int64_t>{scale.elements()};
  const ValueId values =
      AddGraphConstant(node->inputs()[0], order, std::move(dims));
  const ValueId scales =
      AddGraphConstant(node->inputs()[1], {}, parameter_dims);
  const ValueId zeros = AddZeroPoints(node->inputs()[2], scale.elements());
  return model_->AddNode("DequantizeLinear", {values, scales, zeros}, 1,
                         std::move(attributes), node->name())[0];
}

ValueId GraphRaiser::AddZeroPoints(Endpoint tensor, int64_t count) {
  const GraphConstant& zeros = *ConstantOf(tensor);
  std::string bytes(zeros.bytes);
  const bool is_one = zeros.elements() == 1;
  if (is_one) {
    for (int64_t i = 1; i < count; ++i) {
      bytes.append(zeros.bytes.data(), zeros.bytes.size());
    }
  }
  std::vector<int64_t> dims;
  if (count != 1) dims.push_back(count);
  return model_->AddConstant(zeros.type, std::move(dims), std::move(bytes),
                             graph_.NameOf(Behind(tensor)));
}

ValueId GraphRaiser::In(Endpoint tensor, const AxisOrder& wanted) {
  const AxisOrder order = Simplified(wanted);
  const auto found = raised_.find(tensor);
  if (found == raised_.end()) {
    const auto key = std::pair(Behind(tensor), order);
    const auto placed = placed_constants_.find(key);
    if (placed != placed_constants_.end()) return placed->second;
    const graph::Node* dequantized = DequantizedConstant(tensor);
    const GraphConstant* constant =
        ConstantOf(dequantized == nullptr ? tensor : dequantized->inputs()[0]);
    if (constant == nullptr) return kNoValue;
    int axis = -1;
    if (dequantized != nullptr) {
      axis = static_cast<int>(
          graph::GetIntOr(dequantized->def(), "axis", -1).value_or(-1));
      if (axis < 0) axis += static_cast<int>(constant->dims.size());
      axis = AxisInFile(order, axis);
    }
    const ValueId value =
        ConstantAs(tensor, order, Permuted(constant->dims, order), axis);
    return placed_constants_[key] = value;
  }
  const Raised& raised = found->second;
  if (raised.order == order) return raised.value;
  const auto key = std::pair(raised.value, order);
  const auto made = transposed_.find(key);
  if (made != transposed_.end()) return made->second;
  const ValueId value = AddReordered(tensor, raised, order);
  return transposed_[key] = value;
}

ValueId GraphRaiser::AddReordered(Endpoint tensor, const Raised& raised,
                                  const AxisOrder& order) {
  const ValueId dequantized = AddDequantizedAgain(tensor, order);
  if (dequantized != kNoValue) return dequantized;
  const std::string name = absl::StrCat(graph_.NameOf(tensor), "/transposed");
  const graph::PartialShape& shape = shapes_.Of(tensor);
  const int rank =
      static_cast<int>(std::max(raised.order.size(), order.size()));
  if (shape.has_rank() && shape.rank() == rank &&
      std::count(shape.dims().begin(), shape.dims().end(), -1) <= 1 &&
      std::count(shape.dims().begin(), shape.dims().end(), 0) == 0 &&
      HaveSameBytes(shape.dims(), raised.order, order)) {
    const ValueId dims = AddInts(Permuted(shape.dims(), order), name);
    return model_->AddNode("Reshape", {raised.value, dims}, 1, {}, name)[0];
  }
  return model_->AddNode(
      "Transpose", {raised.value}, 1,
      {{"perm", TransposeBetween(raised.order, order, rank)}}, name)[0];
}

ValueId GraphRaiser::AddDequantizedAgain(Endpoint tensor,
                                         const AxisOrder& order) {
  const graph::Node& node = graph_.node(Behind(tensor).node);
  if (!graph::IsDequantizeLinear(node.op()) || node.inputs().size() != 3 ||
      !IsSet(node.inputs()[0])) {
    return kNoValue;
  }
  const GraphConstant* zero = ConstantOf(node.inputs()[2]);
  const GraphConstant* scale = ConstantOf(node.inputs()[1]);
  if (zero == nullptr || scale == nullptr || scale->elements() != 1 ||
      (zero->type != tensorflow::DT_INT8 &&
       zero->type != tensorflow::DT_UINT8)) {
    return kNoValue;
  }
  return model_->AddNode("DequantizeLinear",
                         {In(node.inputs()[0], order),
                          ScaleOf(node.inputs()[1]), ScaleOf(node.inputs()[2])},
                         1, {},
                         absl::StrCat(graph_.NameOf(tensor), "/transposed"))[0];
}

ValueId GraphRaiser::ScaleOf(Endpoint tensor) {
  const GraphConstant* constant = ConstantOf(tensor);
  if (constant == nullptr || constant->elements() != 1) return In(tensor);
  return AddGraphConstant(tensor, {}, {});
}

ValueId GraphRaiser::AddInts(absl::Span<const int64_t> values,
                             absl::string_view name) {
  std::string bytes(values.size() * sizeof(int64_t), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return model_->AddConstant(tensorflow::DT_INT64,
                             {static_cast<int64_t>(values.size())},
                             std::move(bytes), name);
}

ValueId GraphRaiser::AddFloats(absl::Span<const float> values,
                               absl::string_view name) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return model_->AddConstant(tensorflow::DT_FLOAT,
                             {static_cast<int64_t>(values.size())},
                             std::move(bytes), name);
}

ValueId GraphRaiser::AddNumber(DataType type, double value) {
  return model_->AddConstant(type, {}, NumberBytes(type, value),
                             absl::StrCat("number_", value));
}

}  // namespace optfarm::formats
