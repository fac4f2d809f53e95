#include "engine/formats/onnx/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::formats {
namespace {

using onnx::AttributeProto;

bool IsIdentityOrder(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The constant with its dimensions in another order; nullopt where they do not
// fit.
std::optional<runtime::Tensor> Transposed(
    const tensorflow::TensorProto& constant,
    const std::vector<int64_t>& order) {
  auto value = runtime::Tensor::FromProto(constant);
  if (!value.ok() || value->rank() != static_cast<int>(order.size())) {
    return std::nullopt;
  }
  tensorflow::NodeDef def;
  def.set_name("weights");
  def.set_op("Transpose");
  graph::SetType(&def, "T", value->dtype());
  graph::SetType(&def, "Tperm", tensorflow::DT_INT64);
  const auto perm = runtime::Tensor::FromValues<int64_t>(
      runtime::Shape({static_cast<int64_t>(order.size())}), order);
  auto result = runtime::EvaluateNode(def, {*std::move(value), perm}, 1);
  if (!result.ok()) return std::nullopt;
  return (*result)[0];
}

// The constant with dimensions of size 1 at these places.
std::optional<tensorflow::TensorProto> Unsqueezed(
    const tensorflow::TensorProto& constant, const std::vector<int64_t>& axes) {
  tensorflow::TensorProto value = constant;
  std::vector<int64_t> dims;
  for (const auto& dim : constant.tensor_shape().dim()) {
    dims.push_back(dim.size());
  }
  for (const int64_t axis : axes) {
    if (axis < 0 || axis > static_cast<int64_t>(dims.size())) {
      return std::nullopt;
    }
    dims.insert(dims.begin() + axis, 1);
  }
  value.mutable_tensor_shape()->clear_dim();
  for (const int64_t dim : dims) {
    value.mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  return value;
}

// Order of dimensions that brings channels from second to last place, or back.
std::vector<int64_t> ChannelsLastOrder(int rank) {
  std::vector<int64_t> order = {0};
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

std::vector<int64_t> ChannelsFirstOrder(int rank) {
  std::vector<int64_t> order = {0, rank - 1};
  for (int i = 1; i < rank - 1; ++i) order.push_back(i);
  return order;
}

}  // namespace

NodeLowering::NodeLowering(const onnx::NodeProto& node, int opset,
                           std::vector<Endpoint> inputs,
                           OnnxGraphReader* reader, GraphBuilder* builder)
    : node_(node),
      opset_(opset),
      inputs_(std::move(inputs)),
      outputs_(static_cast<size_t>(node.output_size())),
      reader_(reader),
      builder_(builder) {}

// --- Inputs ------------------------------------------------------------------

bool NodeLowering::has_input(int i) const {
  return i < input_count() &&
         inputs_[static_cast<size_t>(i)].node != graph::kNoNode;
}

Endpoint NodeLowering::input(int i) {
  if (has_input(i)) return inputs_[static_cast<size_t>(i)];
  builder_->Fail(
      absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing")));
  return {};
}

std::vector<Endpoint> NodeLowering::inputs() const {
  std::vector<Endpoint> given;
  for (int i = 0; i < input_count(); ++i) {
    if (has_input(i)) given.push_back(inputs_[static_cast<size_t>(i)]);
  }
  return given;
}

// --- Attributes --------------------------------------------------------------

bool NodeLowering::has_attr(absl::string_view name) const {
  return std::any_of(
      node_.attribute().begin(), node_.attribute().end(),
      [&](const AttributeProto& attr) { return attr.name() == name; });
}

const AttributeProto* NodeLowering::Find(absl::string_view name,
                                         AttributeProto::AttributeType type) {
  for (const AttributeProto& attr : node_.attribute()) {
    if (attr.name() != name) continue;
    // Files of the first version do not say the type.
    if (attr.has_type() && attr.type() != type) {
      builder_->Fail(absl::InvalidArgumentError(
          absl::StrCat("attribute '", name, "' has the wrong type")));
      return nullptr;
    }
    return &attr;
  }
  return nullptr;
}

int64_t NodeLowering::Int(absl::string_view name, int64_t absent) {
  const AttributeProto* attr = Find(name, AttributeProto::INT);
  return attr == nullptr ? absent : attr->i();
}

float NodeLowering::Float(absl::string_view name, float absent) {
  const AttributeProto* attr = Find(name, AttributeProto::FLOAT);
  return attr == nullptr ? absent : attr->f();
}

std::string NodeLowering::String(absl::string_view name,
                                 absl::string_view absent) {
  const AttributeProto* attr = Find(name, AttributeProto::STRING);
  return attr == nullptr ? std::string(absent) : attr->s();
}

std::vector<int64_t> NodeLowering::Ints(absl::string_view name) {
  const AttributeProto* attr = Find(name, AttributeProto::INTS);
  if (attr == nullptr) return {};
  return {attr->ints().begin(), attr->ints().end()};
}

std::vector<float> NodeLowering::Floats(absl::string_view name) {
  const AttributeProto* attr = Find(name, AttributeProto::FLOATS);
  if (attr == nullptr) return {};
  return {attr->floats().begin(), attr->floats().end()};
}

std::vector<std::string> NodeLowering::Strings(absl::string_view name) {
  const AttributeProto* attr = Find(name, AttributeProto::STRINGS);
  if (attr == nullptr) return {};
  return {attr->strings().begin(), attr->strings().end()};
}

const onnx::TensorProto* NodeLowering::Tensor(absl::string_view name) {
  const AttributeProto* attr = Find(name, AttributeProto::TENSOR);
  return attr == nullptr ? nullptr : &attr->t();
}

const onnx::GraphProto* NodeLowering::Graph(absl::string_view name) {
  const AttributeProto* attr = Find(name, AttributeProto::GRAPH);
  return attr == nullptr ? nullptr : &attr->g();
}

// --- Knowledge ---------------------------------------------------------------

absl::StatusOr<int> NodeLowering::Rank(Endpoint tensor) const {
  // What went wrong before is said elsewhere.
  OPTFARM_RETURN_IF_ERROR(builder_->status());
  const PartialShape& known = shape(tensor);
  if (known.has_rank()) return known.rank();
  return absl::UnimplementedError(
      "the number of dimensions of its input is known only at run time");
}

absl::StatusOr<int> NodeLowering::Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is not one of ", rank, " dimensions"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<int64_t>> NodeLowering::RequireInts(int i) {
  const Endpoint tensor = input(i);
  OPTFARM_RETURN_IF_ERROR(builder_->status());
  auto known = KnownInts(tensor);
  if (known.has_value()) return *std::move(known);
  return absl::UnimplementedError(absl::StrCat(
      "input ", i, " ('", node_.input(i), "') is known only at run time"));
}

// --- Adding ------------------------------------------------------------------

Endpoint NodeLowering::Cast(Endpoint tensor, DataType type) {
  if (dtype(tensor) == type) return tensor;
  return Add("Cast", {tensor}, {{"DstT", type}});
}

// Of a DequantizeLinear; 0 where one scale is for the whole tensor.
int64_t NodeLowering::ChannelAxis(Endpoint dequantized) const {
  const graph::Node& node = builder_->graph().node(dequantized.node);
  const PartialShape& scale = shape(node.inputs()[1]);
  if (scale.has_rank() && scale.rank() == 0) return 0;
  return graph::GetIntOr(node.def(), "axis", -1).value_or(-1);
}

// The same DequantizeLinear of other quantized weights.
Endpoint NodeLowering::WithOtherWeights(Endpoint dequantized, Endpoint weights,
                                        int64_t axis) {
  const graph::Node& node = builder_->graph().node(dequantized.node);
  std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
  std::vector<OpAttr> attrs;
  for (const auto& [name, attr] : node.def().attr()) {
    if (name != "axis" && name[0] != '_') attrs.emplace_back(name, attr);
  }
  attrs.emplace_back("axis", axis);
  inputs[0] = weights;
  return Add("DequantizeLinear", inputs, std::move(attrs));
}

Endpoint NodeLowering::Transpose(Endpoint tensor,
                                 const std::vector<int64_t>& order) {
  if (IsIdentityOrder(order) || tensor.node == graph::kNoNode) return tensor;
  if (const auto* constant = builder_->ConstantOf(tensor)) {
    auto value = Transposed(*constant, order);
    if (value.has_value()) return builder_->Constant(*value);
  }
  const graph::Node& node = builder_->graph().node(tensor.node);
  if (graph::IsDequantizeLinear(node.op()) && node.inputs().size() == 3) {
    const auto* constant = builder_->ConstantOf(node.inputs()[0]);
    const int64_t axis = ChannelAxis(tensor);
    const auto rank = static_cast<int64_t>(order.size());
    const auto found =
        std::find(order.begin(), order.end(), axis < 0 ? axis + rank : axis);
    if (constant != nullptr && found != order.end()) {
      auto value = Transposed(*constant, order);
      if (value.has_value()) {
        return WithOtherWeights(tensor, builder_->Constant(*value),
                                found - order.begin());
      }
    }
  }
  return Add("Transpose", {tensor, Int32s(order)});
}

Endpoint NodeLowering::Reshape(Endpoint tensor,
                               const std::vector<int64_t>& dims) {
  return Add("Reshape", {tensor, Int64s(dims)});
}

Endpoint NodeLowering::ShapeOf(Endpoint tensor) {
  return Add("Shape", {tensor}, {{"out_type", tensorflow::DT_INT64}});
}

Endpoint NodeLowering::ReshapeRowsLike(Endpoint rows, Endpoint like,
                                       int64_t last) {
  const PartialShape& known = shape(like);
  if (known.has_rank()) {
    std::vector<int64_t> dims(known.dims().begin(), known.dims().end());
    dims.back() = last;
    if (std::count(dims.begin(), dims.end(), graph::kUnknownDim) <= 1) {
      return Reshape(rows, dims);
    }
  }
  const Endpoint outer = Add(
      "StridedSlice", {ShapeOf(like), Int32s({0}), Int32s({-1}), Int32s({1})});
  const Endpoint dims = Add("ConcatV2", {outer, Int64s({last}), Int32(0)});
  return Add("Reshape", {rows, dims});
}

Endpoint NodeLowering::AddBias(Endpoint x, Endpoint bias) {
  if (x.node == graph::kNoNode || bias.node == graph::kNoNode) {
    return Add("Add", {x, bias});
  }
  const graph::Node& reshape = builder_->graph().node(x.node);
  const PartialShape& added = shape(bias);
  const PartialShape& rows = shape(x);
  if (graph::IsReshape(reshape.op()) && dtype(x) == tensorflow::DT_FLOAT &&
      builder_->ConstantOf(bias) != nullptr && added.has_rank() &&
      added.rank() == 1 && rows.has_rank() && rows.rank() > 1 &&
      rows.dim(rows.rank() - 1) == added.dim(0)) {
    const Endpoint product = reshape.inputs()[0];
    const Endpoint sizes = reshape.inputs()[1];
    const PartialShape& columns = shape(product);
    if (builder_->graph().node(product.node).op() == "MatMul" &&
        columns.has_rank() && columns.rank() == 2 &&
        columns.dim(1) == added.dim(0)) {
      return Add("Reshape", {Add("BiasAdd", {product, bias}), sizes});
    }
  }
  return Add("Add", {x, bias});
}

Endpoint NodeLowering::Unsqueeze(Endpoint tensor,
                                 const std::vector<int64_t>& axes) {
  if (axes.empty() || tensor.node == graph::kNoNode) return tensor;
  if (const auto* constant = builder_->ConstantOf(tensor)) {
    auto value = Unsqueezed(*constant, axes);
    if (value.has_value()) return builder_->Constant(*std::move(value));
  }
  const graph::Node& node = builder_->graph().node(tensor.node);
  if (graph::IsDequantizeLinear(node.op()) && node.inputs().size() == 3) {
    // An axis in front of the new ones stays the axis.
    const int64_t axis = ChannelAxis(tensor);
    const auto* constant = builder_->ConstantOf(node.inputs()[0]);
    if (constant != nullptr && axis >= 0 && axis < axes[0]) {
      auto value = Unsqueezed(*constant, axes);
      if (value.has_value()) {
        return WithOtherWeights(tensor, builder_->Constant(*std::move(value)),
                                axis);
      }
    }
  }
  for (const int64_t axis : axes) {
    tensor = Add("ExpandDims", {tensor, Int32(axis)});
  }
  return tensor;
}

Endpoint NodeLowering::Squeeze(Endpoint tensor,
                               const std::vector<int64_t>& axes) {
  if (axes.empty()) return tensor;
  return Add("Squeeze", {tensor}, {{"squeeze_dims", axes}});
}

Endpoint NodeLowering::ToChannelsLast(Endpoint tensor, int rank) {
  return rank < 3 ? tensor : Transpose(tensor, ChannelsLastOrder(rank));
}

Endpoint NodeLowering::ToChannelsFirst(Endpoint tensor, int rank) {
  return rank < 3 ? tensor : Transpose(tensor, ChannelsFirstOrder(rank));
}

// --- Outputs -----------------------------------------------------------------

void NodeLowering::SetOutput(int i, Endpoint tensor) {
  if (i < output_count()) outputs_[static_cast<size_t>(i)] = tensor;
}

}  // namespace optfarm::formats
