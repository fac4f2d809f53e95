#include "engine/optimize/rounding/rounded_layers.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/folding/scale_channels.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/quantizing/channel_quantization.h"

namespace optfarm::optimize {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using transforms::FloatView;

// Places of a layer's inputs.
constexpr size_t kInput = 0, kQuantized = 1, kBias = 2, kInputMin = 3, kMax = 6;
// With more, a quantized value off by more than half a step might leave the 32
// bits that quantize_layers counted on (9).
constexpr size_t kMostProducts = 32768;

// A layer's product in the float graph, and the constant added to it.
struct FloatLayer {
  NodeId product = graph::kNoNode;
  NodeId bias = graph::kNoNode;
};

bool IsProduct(const Node& node) { return graph::IsFloatProduct(node.op()); }

// From the node whose value the layer computes, upwards.
FloatLayer FindFloatLayer(const Graph& floats, NodeId id) {
  FloatLayer layer;
  // A trained range, an activation, a bias, the product.
  for (int i = 0; i < 4; ++i) {
    const Node& node = floats.node(id);
    if (IsProduct(node) && node.inputs().size() == 2) {
      layer.product = id;
      return layer;
    }
    if (node.inputs().empty()) return layer;
    size_t next = 0;
    if (graph::IsSumOrBias(node.op())) {
      if (node.inputs().size() != 2 || layer.bias != graph::kNoNode) return {};
      next = transforms::IsConst(floats.node(node.inputs()[0].node)) ? 1 : 0;
      layer.bias = node.inputs()[1 - next].node;
    } else if (graph::ActivationOf(node.op()) == graph::Activation::kNone &&
               !graph::IsFakeQuantize(node.op())) {
      return layer;
    }
    id = node.inputs()[next].node;
  }
  return layer;
}

bool IsLayer(const Node& node) {
  return graph::IsQuantizedLayer(node.op()) && node.inputs().size() > kMax;
}

// A constant that this node alone reads.
bool OwnsConst(const Graph& graph, const Node& node, size_t input) {
  const Node& constant = graph.node(node.inputs()[input].node);
  return transforms::IsConst(constant) && constant.uses().size() == 1;
}

graph::TensorName NameOf(const Graph& graph, const graph::Endpoint& endpoint) {
  return {graph.node(endpoint.node).name(), endpoint.port};
}

std::optional<WindowShape> ShapeOfWindow(const Node& node,
                                         const runtime::Shape& weights,
                                         bool transposed) {
  WindowShape shape;
  const graph::LayerProduct product = graph::RowOf(node.op()).layer.product;
  if (product == graph::LayerProduct::kMatrix) {
    if (weights.rank() != 2) return std::nullopt;
    shape.channels = weights.dim(transposed ? 1 : 0);
    return shape;
  }
  auto attrs = runtime::ReadWindowAttrs(node.def());
  if (!attrs.ok() || attrs->is_nchw || weights.rank() != 4) {
    return std::nullopt;
  }
  shape.kind = product == graph::LayerProduct::kDepthwise
                   ? WindowShape::Kind::kDepthwise
                   : WindowShape::Kind::kConvolution;
  shape.attrs = *std::move(attrs);
  shape.size_y = weights.dim(0);
  shape.size_x = weights.dim(1);
  shape.channels = weights.dim(2);
  return shape;
}

// The quantized values' constant as it stands in the graph.
std::vector<int8_t> QuantizedIn(const Node& constant) {
  const auto value = transforms::ConstValue(constant);
  if (!value.ok() || value->dtype() != tensorflow::DT_QINT8) return {};
  const int8_t* const values = value->data<int8_t>();
  return {values, values + value->num_elements()};
}

// False when the layer's quantized values are not those of the float weights.
bool SetWeights(const Graph& floats, const FloatLayer& from,
                const FloatView& weights, int64_t channels,
                RoundedLayer* layer) {
  FloatView bias;
  if (from.bias != graph::kNoNode) {
    auto view = FloatView::Of(floats.node(from.bias));
    if (!view.ok()) return false;
    bias = *std::move(view);
  }
  const absl::Span<const float> values = weights.values();
  const transforms::ChannelQuantized quantized = transforms::QuantizeByChannel(
      values, channels, layer->transposed, bias.values());
  if (quantized.values != layer->nearest) return false;
  const auto count = static_cast<size_t>(channels);
  const size_t row = values.size() / count;
  layer->targets.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float largest =
        quantized.largest[layer->transposed ? i / row : i % count];
    layer->targets[i] =
        static_cast<float>(values[i] / (double{largest} / 127.0));
  }
  return true;
}

std::optional<RoundedLayer> LayerAt(const Graph& floats, const Graph& quantized,
                                    NodeId id) {
  const Node& node = quantized.node(id);
  absl::string_view name =
      absl::StripSuffix(node.name(), transforms::kScaledSuffix);
  if (!IsLayer(node) || !absl::ConsumeSuffix(&name, "/eightbit") ||
      !OwnsConst(quantized, node, kQuantized) ||
      !OwnsConst(quantized, node, kBias) ||
      !transforms::IsConst(quantized.node(node.inputs()[kMax].node))) {
    return std::nullopt;
  }
  const NodeId last = floats.Find(name);
  if (last == graph::kNoNode) return std::nullopt;
  const FloatLayer from = FindFloatLayer(floats, last);
  if (from.product == graph::kNoNode) return std::nullopt;
  const Node& product = floats.node(from.product);
  const auto weights = FloatView::Of(floats.node(product.inputs()[1].node));
  const auto largest = FloatView::Of(quantized.node(node.inputs()[kMax].node));
  if (!weights.ok() || !largest.ok()) return std::nullopt;
  const auto channels = transforms::OutputChannels(product, weights->shape());
  if (!channels.ok() || *channels <= 0 ||
      largest->shape().num_elements() != *channels) {
    return std::nullopt;
  }
  RoundedLayer layer;
  layer.id = id;
  layer.values = quantized.node(node.inputs()[kQuantized].node).name();
  layer.bias = quantized.node(node.inputs()[kBias].node).name();
  layer.input = NameOf(quantized, node.inputs()[kInput]);
  layer.min = NameOf(quantized, node.inputs()[kInputMin]);
  layer.max = NameOf(quantized, node.inputs()[kInputMin + 1]);
  layer.transposed =
      graph::GetBoolOr(node.def(), "transpose_b", false).value_or(false);
  const auto window = ShapeOfWindow(node, weights->shape(), layer.transposed);
  if (!window.has_value()) return std::nullopt;
  layer.window = *window;
  const bool is_depthwise = window->kind == WindowShape::Kind::kDepthwise;
  if (window->columns() == 0 ||
      (!is_depthwise && window->columns() >= kMostProducts)) {
    return std::nullopt;
  }
  layer.outputs = static_cast<size_t>(
      is_depthwise ? *channels / window->channels : *channels);
  layer.nearest = QuantizedIn(quantized.node(node.inputs()[kQuantized].node));
  if (!SetWeights(floats, from, *weights, *channels, &layer)) {
    return std::nullopt;
  }
  for (const float value : largest->values()) {
    layer.steps.push_back(double{value} / 127.0);
  }
  return layer;
}

}  // namespace

size_t RoundedLayer::columns_together() const {
  return window.kind == WindowShape::Kind::kDepthwise
             ? static_cast<size_t>(window.size_y * window.size_x)
             : window.columns();
}

size_t RoundedLayer::PlaceOf(size_t column, size_t output) const {
  if (window.kind == WindowShape::Kind::kDepthwise) {
    const size_t cells = columns_together();
    const auto channels = static_cast<size_t>(window.channels);
    return (column % cells * channels + column / cells) * outputs + output;
  }
  return transposed ? output * window.columns() + column
                    : column * outputs + output;
}

size_t RoundedLayer::ChannelOf(size_t column, size_t output) const {
  return window.kind == WindowShape::Kind::kDepthwise
             ? column / columns_together() * outputs + output
             : output;
}

std::vector<RoundedLayer> FindRoundedLayers(const Graph& floats,
                                            const Graph& quantized) {
  std::vector<RoundedLayer> layers;
  for (const NodeId id : quantized.Ids()) {
    auto layer = LayerAt(floats, quantized, id);
    if (layer.has_value()) layers.push_back(*std::move(layer));
  }
  return layers;
}

}  // namespace optfarm::optimize
