#include "engine/transforms/quantizing/layer_products.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/quantizing/channel_quantization.h"
#include "engine/transforms/quantizing/layer_conditions.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::NodeDef;

// A Relu6's range.
constexpr float kSix = 6.0f;

// Stride 1, no padding.
void SetWindow(NodeDef* def) {
  auto* strides = (*def->mutable_attr())["strides"].mutable_list();
  for (int i = 0; i < 4; ++i) strides->add_i(1);
  graph::SetString(def, "padding", "VALID");
}

}  // namespace

Endpoint NumbersBeside(const graph::Graph& graph, const graph::Node& node,
                       NodeId constant) {
  const absl::Span<const Endpoint> inputs = node.inputs();
  return inputs[ConstantOf(graph, inputs[0]) == constant ? 1 : 0];
}

absl::StatusOr<QuantizedGroup> LayerProducts::AddProduct(
    const LayerGroup& group) {
  const graph::Node& head = node(group.head);
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint bias, Bias(group));
  OPTFARM_ASSIGN_OR_RETURN(const QuantizedWeights weights, Weights(group));
  const QuantizedTensor x = nodes_->QuantizedOf(head.inputs()[0]);
  NodeDef def = MakeProduct(graph::RowOf(head.op()).quantized->layer_op, group);
  CopyAttributes(head, {"strides", "padding", "dilations", "transpose_b"},
                 &def);
  const std::vector<NodeId> controls(head.control_inputs().begin(),
                                     head.control_inputs().end());
  const NodeId layer = AddLayer(std::move(def), x, weights, bias);
  for (NodeId control : controls) {
    nodes_->graph()->AddControlInput(layer, control);
  }
  return QuantizedGroup{Requantized(layer, group), layer};
}

NodeDef LayerProducts::MakeProduct(absl::string_view layer_op,
                                   const LayerGroup& group) const {
  const bool is_matrix =
      graph::RowOf(layer_op).layer.product == graph::LayerProduct::kMatrix;
  NodeDef def = nodes_->MakeLayer(absl::StrCat(
      layer_op, group.activation != graph::kNoNode ? "AndRelu" : ""));
  graph::SetType(&def, is_matrix ? "T1" : "Tinput", tensorflow::DT_QUINT8);
  graph::SetType(&def, is_matrix ? "T2" : "Tfilter", tensorflow::DT_QINT8);
  graph::SetType(&def, is_matrix ? "Toutput" : "out_type",
                 tensorflow::DT_QINT32);
  const tensorflow::OpDef* op_def = graph::FindOpDef(def.op());
  if (op_def != nullptr && graph::FindAttrDef(*op_def, "Tbias") != nullptr) {
    graph::SetType(&def, "Tbias", tensorflow::DT_FLOAT);
  }
  return def;
}

NodeId LayerProducts::AddLayer(NodeDef def, const QuantizedTensor& x,
                               const QuantizedWeights& weights, Endpoint bias) {
  return nodes_->Add(std::move(def), {x.values, weights.values, bias, x.min,
                                      x.max, weights.min, weights.max});
}

absl::StatusOr<int64_t> LayerProducts::ChannelsOf(
    const LayerGroup& group) const {
  OPTFARM_ASSIGN_OR_RETURN(const FloatView weights,
                           FloatView::Of(node(group.weights)));
  return OutputChannels(node(group.head), weights.shape());
}

// A vector with a number for each channel; zeros where there was none, which
// the correction of biases may change.
absl::StatusOr<Endpoint> LayerProducts::Bias(const LayerGroup& group) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(group));
  std::vector<float> values(static_cast<size_t>(channels), 0.0f);
  if (group.bias != graph::kNoNode) {
    OPTFARM_ASSIGN_OR_RETURN(const FloatView bias,
                             FloatView::Of(node(group.bias)));
    values.assign(bias.values().begin(), bias.values().end());
  }
  return nodes_->AddFloats("bias", values);
}

absl::StatusOr<LayerProducts::QuantizedWeights> LayerProducts::Weights(
    const LayerGroup& group) {
  const graph::Node& head = node(group.head);
  const bool channels_first =
      graph::GetBoolOr(head.def(), "transpose_b", false).value_or(false);
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view,
                           FloatView::Of(node(group.weights)));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(group));
  FloatView bias;
  if (group.bias != graph::kNoNode) {
    OPTFARM_ASSIGN_OR_RETURN(bias, FloatView::Of(node(group.bias)));
  }
  // A loop has its own.
  if (group.is_in_loop) {
    return AddWeights(view.values(), view.shape(), channels, channels_first,
                      bias.values());
  }
  const std::string key =
      absl::StrCat(group.weights, head.op(), group.bias, channels_first);
  const auto [it, is_new] = weights_.emplace(key, QuantizedWeights());
  if (is_new) {
    OPTFARM_ASSIGN_OR_RETURN(it->second,
                             AddWeights(view.values(), view.shape(), channels,
                                        channels_first, bias.values()));
  }
  return it->second;
}

// Formula 25.
absl::StatusOr<LayerProducts::QuantizedWeights> LayerProducts::AddWeights(
    absl::Span<const float> values, const runtime::Shape& shape,
    int64_t channels, bool channels_first, absl::Span<const float> bias) {
  const ChannelQuantized by_channel =
      QuantizeByChannel(values, channels, channels_first, bias);
  OPTFARM_ASSIGN_OR_RETURN(Tensor quantized,
                           Tensor::Allocate(tensorflow::DT_QINT8, shape));
  std::copy(by_channel.values.begin(), by_channel.values.end(),
            quantized.data<int8_t>());
  QuantizedWeights weights;
  weights.values = nodes_->AddConstant("weights", quantized);
  weights.max = nodes_->AddConstant(
      "max", Tensor::FromValues<float>({channels}, by_channel.largest));
  weights.min = Negated(weights.max);
  return weights;
}

// The ranges are symmetric: the other end costs no bytes.
Endpoint LayerProducts::Negated(Endpoint max) {
  NodeDef negated = nodes_->Make("min", "Neg");
  graph::SetType(&negated, "T", tensorflow::DT_FLOAT);
  return {nodes_->Add(std::move(negated), {max}), 0};
}

QuantizedTensor LayerProducts::Requantized(NodeId layer,
                                           const LayerGroup& group) {
  std::vector<Endpoint> inputs = ValuesAndRange(layer);
  if (group.trained_range != graph::kNoNode) {
    const auto range = node(group.trained_range).inputs();
    inputs.insert(inputs.end(), range.begin() + 1, range.end());
  } else {
    const NodeId range = AddRange(inputs, group);
    inputs.push_back({range, 0});
    inputs.push_back({range, 1});
  }
  NodeDef def = nodes_->Make("requantize", "RequantizePerChannel");
  graph::SetType(&def, "T", tensorflow::DT_QINT32);
  graph::SetType(&def, "out_type", tensorflow::DT_QUINT8);
  return ResultOf(nodes_->Add(std::move(def), inputs));
}

NodeId LayerProducts::AddRange(absl::Span<const Endpoint> sums,
                               const LayerGroup& group) {
  NodeDef range_def = nodes_->Make("range", "RequantizationRangePerChannel");
  graph::SetType(&range_def, "T", tensorflow::DT_QINT32);
  const bool is_relu6 = group.activation != graph::kNoNode &&
                        graph::ActivationOf(node(group.activation).op()) ==
                            graph::Activation::kRelu6;
  graph::SetFloat(&range_def, "clip_value_max", is_relu6 ? kSix : 0.0f);
  const NodeId range = nodes_->Add(std::move(range_def), sums);
  nodes_->Anchor(range);
  return range;
}

// --- What depthwise products do besides ------------------------------------

// Formula 34: a window as large as the picture, with the same weight
// everywhere.
absl::StatusOr<QuantizedGroup> LayerProducts::AddMean(NodeId head) {
  const Endpoint input = node(head).inputs()[0];
  const std::optional<PictureSize> size =
      MeanOverPicture(shapes_, head, node(head));
  if (!size.has_value()) return absl::InternalError("no mean over a picture");
  const int64_t channels = shapes_.Of(input).dim(3);
  const auto count = static_cast<float>(size->height * size->width);
  QuantizedWeights weights;
  weights.values = AddEqualWeights({size->height, size->width, channels, 1});
  weights.max = nodes_->AddConstant("max", Tensor::Scalar<float>(1.0f / count));
  weights.min = Negated(weights.max);
  const QuantizedTensor x = nodes_->QuantizedOf(input);
  NodeDef def = nodes_->MakeLayer("QuantizedDepthwiseConv2D");
  graph::SetType(&def, "Tinput", tensorflow::DT_QUINT8);
  graph::SetType(&def, "Tfilter", tensorflow::DT_QINT8);
  graph::SetType(&def, "out_type", tensorflow::DT_QINT32);
  SetWindow(&def);
  const NodeId layer = nodes_->Add(
      std::move(def),
      {x.values, weights.values, x.min, x.max, weights.min, weights.max});
  const QuantizedTensor mean = Requantized(layer, {});
  if (shapes_.Of({head, 0}).rank() == 4) return QuantizedGroup{mean, layer};
  return QuantizedGroup{nodes_->Reshaped(mean, {-1, channels}, "flat"), layer};
}

// The value 127, given once.
Endpoint LayerProducts::AddEqualWeights(std::initializer_list<int64_t> dims) {
  NodeDef def = nodes_->Make("weights", "Const");
  graph::SetType(&def, "dtype", tensorflow::DT_QINT8);
  tensorflow::TensorProto* proto =
      (*def.mutable_attr())["value"].mutable_tensor();
  proto->set_dtype(tensorflow::DT_QINT8);
  for (int64_t dim : dims) {
    proto->mutable_tensor_shape()->add_dim()->set_size(dim);
  }
  proto->add_int_val(127);
  return {nodes_->Add(std::move(def), {}), 0};
}

// Formula 35: a window of one pixel.
absl::StatusOr<QuantizedGroup> LayerProducts::AddChannels(
    const LayerGroup& group) {
  const graph::Node& head = node(group.head);
  const Endpoint input = NumbersBeside(
      *nodes_->graph(), head,
      group.weights == graph::kNoNode ? group.bias : group.weights);
  const graph::PartialShape& shape = shapes_.Of(input);
  const int64_t channels = shape.dim(shape.rank() - 1);
  const auto numbers = [&](NodeId id, float without) {
    const std::vector<float> same(static_cast<size_t>(channels), without);
    if (id == graph::kNoNode) return same;
    return ChannelNumbers(node(id), channels, shape.rank()).value_or(same);
  };
  const std::vector<float> factors = numbers(group.weights, 1.0f);
  const std::vector<float> offsets = numbers(group.bias, 0.0f);
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape window,
                           runtime::Shape::FromDims({1, 1, channels, 1}));
  OPTFARM_ASSIGN_OR_RETURN(
      const QuantizedWeights weights,
      AddWeights(factors, window, channels, false, offsets));
  const Endpoint bias = nodes_->AddFloats("bias", offsets);
  QuantizedTensor x = nodes_->QuantizedOf(input);
  const bool is_picture = shape.rank() == 4;
  if (!is_picture) x = nodes_->Reshaped(x, {-1, 1, 1, channels}, "pixels");
  NodeDef def = MakeProduct("QuantizedDepthwiseConv2DWithBias", group);
  SetWindow(&def);
  const NodeId layer = AddLayer(std::move(def), x, weights, bias);
  const QuantizedTensor result = Requantized(layer, group);
  if (is_picture) return QuantizedGroup{result, layer};
  // With one dimension that is not known its number follows from the others.
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape.dim(i));
  return QuantizedGroup{nodes_->Reshaped(result, dims, "shaped"), layer};
}

}  // namespace optfarm::transforms
