#include "engine/formats/onnx/graph_builder.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/node_shapes.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::formats {
namespace {

using graph::NodeId;
using graph::ShapeContext;
using tensorflow::NodeDef;
using tensorflow::OpDef;

// Constants of at most so many elements are followed and folded.
constexpr int64_t kMaxKnownElements = 4096;

// Kept as they are on constants: quantized weights and biases stay quantized.
bool MayFold(absl::string_view op) {
  return !graph::IsDequantizeLinear(op) && !graph::IsQuantizeLinear(op) &&
         !graph::IsPlaceholder(op) && !graph::IsConst(op);
}

bool IsAllowed(const OpDef::AttrDef& attr, DataType type) {
  const auto& allowed = attr.allowed_values().list().type();
  return allowed.empty() ||
         std::find(allowed.begin(), allowed.end(), type) != allowed.end();
}

// TensorFlow's signatures leave out some types, above all unsigned integers,
// that kernels take all the same.
absl::Status CheckTypes(const OpDef& op_def, const NodeDef& def) {
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (attr.type() != "type") continue;
    const auto found = def.attr().find(attr.name());
    if (found == def.attr().end() || IsAllowed(attr, found->second.type())) {
      continue;
    }
    const runtime::KernelEntry* kernel = runtime::AllKernels().Find(def.op());
    if (kernel != nullptr && kernel->Make(def).ok()) continue;
    return absl::UnimplementedError(absl::StrCat(
        def.op(), " of type ", graph::DataTypeName(found->second.type()),
        " is not supported"));
  }
  return absl::OkStatus();
}

std::optional<runtime::Tensor> TensorOf(const graph::PartialValue& value,
                                        DataType type) {
  if (!value.is_known()) return std::nullopt;
  const auto shape = runtime::Shape::FromDims(value.dims);
  if (!shape.ok() ||
      shape->num_elements() != static_cast<int64_t>(value.elements.size())) {
    return std::nullopt;
  }
  if (type == tensorflow::DT_INT64) {
    std::vector<int64_t> values;
    for (const auto& element : value.elements) values.push_back(*element);
    return runtime::Tensor::FromValues<int64_t>(*shape, values);
  }
  if (type != tensorflow::DT_INT32) return std::nullopt;
  std::vector<int32_t> values;
  for (const auto& element : value.elements) {
    values.push_back(static_cast<int32_t>(*element));
  }
  return runtime::Tensor::FromValues<int32_t>(*shape, values);
}

}  // namespace

void GraphBuilder::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Status GraphBuilder::TakeStatus() {
  absl::Status status = std::move(status_);
  status_ = absl::OkStatus();
  return status;
}

// --- Adding ------------------------------------------------------------------

// Types and numbers that `def` lacks, from its inputs. At most one argument of
// an op is a list whose length is not said otherwise.
absl::Status GraphBuilder::CompleteTypes(const std::vector<Endpoint>& inputs,
                                         NodeDef* def) const {
  const OpDef* op_def = graph::FindOpDef(def->op());
  if (op_def == nullptr) {
    return absl::InternalError(
        absl::StrCat("there is no op '", def->op(), "' to lower to"));
  }
  int singles = 0;
  for (const OpDef::ArgDef& arg : op_def->input_arg()) {
    singles += arg.number_attr().empty() && arg.type_list_attr().empty();
  }
  const int listed = static_cast<int>(inputs.size()) - singles;
  int next = 0;
  for (const OpDef::ArgDef& arg : op_def->input_arg()) {
    const bool is_list =
        !arg.number_attr().empty() || !arg.type_list_attr().empty();
    const int count = is_list ? std::max(listed, 0) : 1;
    if (!arg.number_attr().empty() &&
        !def->attr().contains(arg.number_attr())) {
      graph::SetInt(def, arg.number_attr(), count);
    }
    std::vector<DataType> types;
    for (int i = next; i < next + count; ++i) {
      if (i < static_cast<int>(inputs.size()))
        types.push_back(dtype(inputs[i]));
    }
    next += count;
    if (!arg.type_list_attr().empty()) {
      if (!def->attr().contains(arg.type_list_attr())) {
        graph::SetTypes(def, arg.type_list_attr(), types);
      }
    } else if (!arg.type_attr().empty() && !types.empty() &&
               !def->attr().contains(arg.type_attr())) {
      graph::SetType(def, arg.type_attr(), types[0]);
    }
  }
  OPTFARM_RETURN_IF_ERROR(graph::ApplyDefaultAttributes(*op_def, def));
  OPTFARM_RETURN_IF_ERROR(CheckTypes(*op_def, *def));
  OPTFARM_ASSIGN_OR_RETURN(const auto wanted, graph::InputTypes(*op_def, *def));
  if (wanted.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        def->op(), " takes ", wanted.size(), " inputs, not ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (wanted[i] == dtype(inputs[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " of ", def->op(), " is ",
                     graph::DataTypeName(dtype(inputs[i])), ", not ",
                     graph::DataTypeName(wanted[i])));
  }
  return absl::OkStatus();
}

std::vector<Endpoint> GraphBuilder::AddAll(absl::string_view op,
                                           const std::vector<Endpoint>& inputs,
                                           std::vector<OpAttr> attrs) {
  if (!status_.ok()) return {};
  for (const Endpoint& input : inputs) {
    if (input.node == graph::kNoNode) {
      Fail(absl::InvalidArgumentError(
          absl::StrCat("an input of ", op, " is missing")));
      return {};
    }
  }
  NodeDef def;
  def.set_name(absl::StrCat(scope_, "/", op));
  def.set_op(std::string(op));
  for (OpAttr& attr : attrs) {
    (*def.mutable_attr())[attr.name] = std::move(attr.value);
  }
  absl::Status complete = CompleteTypes(inputs, &def);
  if (!complete.ok()) {
    Fail(std::move(complete));
    return {};
  }
  NodeKnowledge known;
  const auto types = graph::OutputTypes(*graph::FindOpDef(def.op()), def);
  if (!types.ok()) {
    Fail(types.status());
    return {};
  }
  known.types = *types;
  std::vector<const ShapeContext::Tensor*> tensors;
  for (const Endpoint& input : inputs) tensors.push_back(&knowledge(input));
  auto outputs =
      graph::InferNodeShapes(def, std::move(tensors), kGraphProducer);
  // A branch that is never taken may hold shapes that do not fit.
  if (outputs.ok()) known.outputs = *std::move(outputs);
  known.outputs.resize(known.types.size());
  if (auto folded = Fold(def, inputs, known)) return *std::move(folded);
  const NodeId id = graph_.Add(std::move(def), inputs);
  std::vector<Endpoint> endpoints;
  for (size_t i = 0; i < known.types.size(); ++i) {
    endpoints.push_back({id, static_cast<int>(i)});
  }
  nodes_.resize(static_cast<size_t>(graph_.id_limit()));
  nodes_[static_cast<size_t>(id)] = std::move(known);
  return endpoints;
}

Endpoint GraphBuilder::Add(absl::string_view op,
                           const std::vector<Endpoint>& inputs,
                           std::vector<OpAttr> attrs) {
  const std::vector<Endpoint> outputs = AddAll(op, inputs, std::move(attrs));
  return outputs.empty() ? Endpoint() : outputs[0];
}

std::optional<std::vector<Endpoint>> GraphBuilder::Fold(
    const NodeDef& def, const std::vector<Endpoint>& inputs,
    const NodeKnowledge& known) {
  if (!MayFold(def.op()) || graph::IsStateful(def.op())) return std::nullopt;
  if (known.types.size() == 1 && known.outputs[0].value.has_value()) {
    const auto value = TensorOf(*known.outputs[0].value, known.types[0]);
    if (value.has_value()) return std::vector<Endpoint>{Constant(*value)};
  }
  for (const ShapeContext::Tensor& output : known.outputs) {
    const auto elements = output.shape.elements();
    if (!elements.has_value() || *elements > kMaxKnownElements) {
      return std::nullopt;
    }
  }
  const runtime::KernelEntry* kernel = runtime::AllKernels().Find(def.op());
  if (kernel == nullptr || !kernel->is_pure) return std::nullopt;
  std::vector<runtime::Tensor> values;
  for (const Endpoint& input : inputs) {
    auto value = Known(input);
    if (!value.has_value()) return std::nullopt;
    values.push_back(*std::move(value));
  }
  const auto results =
      runtime::EvaluateNode(def, values, static_cast<int>(known.types.size()));
  if (!results.ok()) return std::nullopt;
  for (const runtime::Tensor& result : *results) {
    if (!result.has_value() || result.is_handle()) return std::nullopt;
  }
  std::vector<Endpoint> constants;
  for (const runtime::Tensor& result : *results) {
    constants.push_back(Constant(result));
  }
  return constants;
}

Endpoint GraphBuilder::Constant(tensorflow::TensorProto value) {
  if (!status_.ok()) return {};
  NodeKnowledge known;
  known.types = {value.dtype()};
  NodeDef def;
  def.set_name(absl::StrCat(scope_, "/Const"));
  def.set_op("Const");
  graph::SetType(&def, "dtype", value.dtype());
  *(*def.mutable_attr())["value"].mutable_tensor() = std::move(value);
  auto outputs = graph::InferNodeShapes(def, {}, kGraphProducer);
  if (outputs.ok()) known.outputs = *std::move(outputs);
  known.outputs.resize(1);
  const NodeId id = graph_.Add(std::move(def), {});
  nodes_.resize(static_cast<size_t>(graph_.id_limit()));
  nodes_[static_cast<size_t>(id)] = std::move(known);
  return {id, 0};
}

Endpoint GraphBuilder::Constant(const runtime::Tensor& value) {
  return Constant(value.ToProto());
}

Endpoint GraphBuilder::Int32s(const std::vector<int64_t>& values) {
  std::vector<int32_t> narrow;
  for (const int64_t value : values) {
    // Limits such as "to the end" stay limits.
    narrow.push_back(static_cast<int32_t>(
        std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max())));
  }
  return Constant(runtime::Tensor::FromValues<int32_t>(
      runtime::Shape({static_cast<int64_t>(narrow.size())}), narrow));
}

Endpoint GraphBuilder::Int64s(const std::vector<int64_t>& values) {
  return Constant(runtime::Tensor::FromValues<int64_t>(
      runtime::Shape({static_cast<int64_t>(values.size())}), values));
}

Endpoint GraphBuilder::Int32(int64_t value) {
  return Constant(runtime::Tensor::Scalar(static_cast<int32_t>(value)));
}

Endpoint GraphBuilder::Floats(const std::vector<float>& values) {
  return Constant(runtime::Tensor::FromValues<float>(
      runtime::Shape({static_cast<int64_t>(values.size())}), values));
}

Endpoint GraphBuilder::Scalar(DataType dtype, double value) {
  const Endpoint wide = Constant(runtime::Tensor::Scalar(value));
  if (dtype == tensorflow::DT_DOUBLE) return wide;
  return Add("Cast", {wide}, {{"DstT", dtype}});
}

Endpoint GraphBuilder::AddPlaceholder(const std::string& name, DataType dtype,
                                      const PartialShape& shape) {
  NodeDef def;
  def.set_name(name);
  def.set_op("Placeholder");
  graph::SetType(&def, "dtype", dtype);
  *(*def.mutable_attr())["shape"].mutable_shape() = shape.ToProto();
  const NodeId id = graph_.Add(std::move(def), {});
  nodes_.resize(static_cast<size_t>(graph_.id_limit()));
  nodes_[static_cast<size_t>(id)] = {{dtype},
                                     {{shape, std::nullopt, std::nullopt}}};
  return {id, 0};
}

// --- Knowing -----------------------------------------------------------------

const ShapeContext::Tensor& GraphBuilder::knowledge(Endpoint tensor) const {
  static const ShapeContext::Tensor* const nothing = new ShapeContext::Tensor;
  if (tensor.node < 0 || static_cast<size_t>(tensor.node) >= nodes_.size()) {
    return *nothing;
  }
  const auto& outputs = nodes_[static_cast<size_t>(tensor.node)].outputs;
  if (tensor.port < 0 || static_cast<size_t>(tensor.port) >= outputs.size()) {
    return *nothing;
  }
  return outputs[static_cast<size_t>(tensor.port)];
}

void GraphBuilder::set_knowledge(Endpoint tensor, ShapeContext::Tensor known) {
  if (&knowledge(tensor) == &knowledge(Endpoint())) return;
  nodes_[static_cast<size_t>(tensor.node)]
      .outputs[static_cast<size_t>(tensor.port)] = std::move(known);
}

DataType GraphBuilder::dtype(Endpoint tensor) const {
  if (tensor.node < 0 || static_cast<size_t>(tensor.node) >= nodes_.size()) {
    return tensorflow::DT_INVALID;
  }
  const auto& types = nodes_[static_cast<size_t>(tensor.node)].types;
  if (tensor.port < 0 || static_cast<size_t>(tensor.port) >= types.size()) {
    return tensorflow::DT_INVALID;
  }
  return types[static_cast<size_t>(tensor.port)];
}

const PartialShape& GraphBuilder::shape(Endpoint tensor) const {
  return knowledge(tensor).shape;
}

void GraphBuilder::SetShape(Endpoint tensor, PartialShape shape) {
  ShapeContext::Tensor known = knowledge(tensor);
  known.shape = std::move(shape);
  set_knowledge(tensor, std::move(known));
}

const tensorflow::TensorProto* GraphBuilder::ConstantOf(Endpoint tensor) const {
  while (tensor.node != graph::kNoNode && tensor.port == 0) {
    const graph::Node& node = graph_.node(tensor.node);
    if (graph::IsConst(node.op())) {
      const auto value = graph::GetTensor(node.def(), "value");
      return value.ok() ? *value : nullptr;
    }
    if (!graph::IsIdentity(node.op()) || node.inputs().size() != 1)
      return nullptr;
    tensor = node.inputs()[0];
  }
  return nullptr;
}

std::optional<runtime::Tensor> GraphBuilder::Known(Endpoint tensor) const {
  const tensorflow::TensorProto* constant = ConstantOf(tensor);
  if (constant != nullptr) {
    const auto elements = graph::ElementCount(constant->tensor_shape());
    if (!elements.ok() || *elements > kMaxKnownElements) return std::nullopt;
    auto value = runtime::Tensor::FromProto(*constant);
    if (!value.ok()) return std::nullopt;
    return *std::move(value);
  }
  const ShapeContext::Tensor& known = knowledge(tensor);
  if (!known.value.has_value()) return std::nullopt;
  return TensorOf(*known.value, dtype(tensor));
}

std::optional<std::vector<int64_t>> GraphBuilder::KnownInts(
    Endpoint tensor) const {
  const auto value = Known(tensor);
  if (!value.has_value()) return std::nullopt;
  auto ints = value->AsInt64s();
  if (!ints.ok()) return std::nullopt;
  return *std::move(ints);
}

const graph::PartialValue* GraphBuilder::PartialInts(Endpoint tensor) const {
  const auto& value = knowledge(tensor).value;
  return value.has_value() ? &*value : nullptr;
}

std::optional<std::vector<float>> GraphBuilder::KnownFloats(
    Endpoint tensor) const {
  constexpr int64_t kMost = int64_t{1} << 24;
  const tensorflow::TensorProto* constant = ConstantOf(tensor);
  if (constant == nullptr) return std::nullopt;
  const auto elements = graph::ElementCount(constant->tensor_shape());
  if (!elements.ok() || *elements > kMost) return std::nullopt;
  auto value = runtime::Tensor::FromProto(*constant);
  if (!value.ok()) return std::nullopt;
  runtime::Tensor floats = *std::move(value);
  if (floats.dtype() != tensorflow::DT_FLOAT) {
    if (floats.dtype() != tensorflow::DT_HALF &&
        floats.dtype() != tensorflow::DT_BFLOAT16 &&
        floats.dtype() != tensorflow::DT_DOUBLE) {
      return std::nullopt;
    }
    NodeDef cast;
    cast.set_name("cast");
    cast.set_op("Cast");
    graph::SetType(&cast, "SrcT", floats.dtype());
    graph::SetType(&cast, "DstT", tensorflow::DT_FLOAT);
    auto converted = runtime::EvaluateNode(cast, {floats}, 1);
    if (!converted.ok()) return std::nullopt;
    floats = (*converted)[0];
  }
  const auto flat = static_cast<const runtime::Tensor&>(floats).flat<float>();
  return std::vector<float>(flat.begin(), flat.end());
}

}  // namespace optfarm::formats
