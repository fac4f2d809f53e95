#include "engine/transforms/pruning/channel_nodes.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;

// Elements of a whole-number input that are all known; empty otherwise.
std::vector<int64_t> Numbers(const ShapeMap& shapes, Endpoint tensor) {
  const graph::PartialValue* value = shapes.ValueOf(tensor);
  if (value == nullptr || !value->is_known()) return {};
  std::vector<int64_t> numbers;
  for (const auto& element : value->elements) numbers.push_back(*element);
  return numbers;
}

bool SetsAxes(ProductWeights* weights, graph::LayerProduct product,
              const graph::Node& node) {
  const int rank = weights->view.shape().rank();
  if (product == graph::LayerProduct::kMatrix) {
    // An attribute that cannot be read is none that we understand.
    const auto data = graph::GetBoolOr(node.def(), "transpose_a", false);
    if (rank != 2 || data.value_or(true)) return false;
    weights->input_axis = HasTransposedWeights(node) ? 1 : 0;
    weights->output_axis = 1 - weights->input_axis;
    weights->input_stride = weights->output_axis == 1 ? weights->outputs() : 1;
    return true;
  }
  if (rank != 4 || !graph::IsNhwc(node.def())) return false;
  weights->input_axis = 2;
  weights->output_axis = 3;
  weights->input_stride = weights->outputs();
  weights->is_depthwise = product == graph::LayerProduct::kDepthwise;
  return true;
}

}  // namespace

int64_t ProductWeights::OutputOf(int64_t i) const {
  if (is_depthwise) return i % (inputs() * outputs());
  return output_axis > input_axis ? i % outputs() : i / inputs();
}

std::optional<ProductWeights> ReadProductWeights(const Graph& graph,
                                                 const ShapeMap& shapes,
                                                 NodeId id) {
  const graph::Node& node = graph.node(id);
  const graph::LayerProduct product = graph::FloatProductOf(node.op());
  if (product == graph::LayerProduct::kNone || node.inputs().size() != 2 ||
      node.inputs()[1].port != 0) {
    return std::nullopt;
  }
  ProductWeights weights;
  weights.constant = node.inputs()[1].node;
  if (!IsConst(graph.node(weights.constant))) return std::nullopt;
  auto view = FloatView::Of(graph.node(weights.constant));
  if (!view.ok() || view->values().empty()) return std::nullopt;
  weights.view = *std::move(view);
  if (!SetsAxes(&weights, product, node)) return std::nullopt;
  if (product == graph::LayerProduct::kConvolution &&
      ChannelsOf(shapes, node.inputs()[0]) != weights.inputs()) {
    return std::nullopt;
  }
  return weights;
}

bool HasFedParameters(const Graph& graph, const TransformContext& context,
                      NodeId id, int data_input) {
  const auto inputs = graph.node(id).inputs();
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const NodeId source = inputs[static_cast<size_t>(i)].node;
    if (i != data_input && context.IsInput(graph.node(source).name())) {
      return true;
    }
  }
  return false;
}

bool SeesNoPadding(const graph::Node& node, const runtime::Shape& weights) {
  if (graph::IsFloatMatMul(node.op())) return true;
  const auto padding = graph::GetPadding(node.def());
  if (!padding.ok() || *padding == graph::Padding::kExplicit) return false;
  return *padding == graph::Padding::kValid ||
         (weights.dim(0) == 1 && weights.dim(1) == 1);
}

bool PoolsEachChannel(const graph::Node& node) {
  const graph::OpRole role = graph::RowOf(node.op()).role;
  if ((role != graph::OpRole::kMaxPool &&
       role != graph::OpRole::kAveragePool) ||
      node.inputs().size() != 1 || !graph::IsNhwc(node.def())) {
    return false;
  }
  for (const char* attribute : {"ksize", "strides"}) {
    const auto sizes = graph::GetInts(node.def(), attribute);
    if (!sizes.ok() || sizes->size() != 4 || sizes->back() != 1) return false;
  }
  return graph::IsSameOrValid(node.def());
}

bool AveragesEachChannel(const Graph& graph, const ShapeMap& shapes,
                         NodeId id) {
  const graph::Node& node = graph.node(id);
  if (!graph::HasRole(node.op(), graph::OpRole::kMean) ||
      node.inputs().size() != 2 || !shapes.Of(node.inputs()[0]).has_rank()) {
    return false;
  }
  const int64_t last = shapes.Of(node.inputs()[0]).rank() - 1;
  const std::vector<int64_t> axes = Numbers(shapes, node.inputs()[1]);
  return !axes.empty() && absl::c_none_of(axes, [&](int64_t axis) {
    return axis == last || axis == -1;
  });
}

bool PadsWithZeros(const graph::Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kPad) &&
         node.inputs().size() == 2;
}

bool PadsEachChannel(const Graph& graph, const ShapeMap& shapes, NodeId id) {
  const graph::Node& node = graph.node(id);
  if (!PadsWithZeros(node) &&
      (node.op() != "MirrorPad" || node.inputs().size() != 2)) {
    return false;
  }
  const std::vector<int64_t> paddings = Numbers(shapes, node.inputs()[1]);
  return paddings.size() >= 2 && paddings[paddings.size() - 1] == 0 &&
         paddings[paddings.size() - 2] == 0;
}

int JoinedInputs(const Graph& graph, const ShapeMap& shapes, NodeId id,
                 int* first) {
  const graph::Node& node = graph.node(id);
  const graph::OpRow& row = graph::RowOf(node.op());
  const int count = static_cast<int>(node.inputs().size()) - 1;
  if (row.role != graph::OpRole::kConcat || count < 1) return 0;
  *first = row.has_axis_first ? 1 : 0;
  const graph::PartialShape& shape =
      shapes.Of(node.inputs()[static_cast<size_t>(*first)]);
  const std::vector<int64_t> axis =
      Numbers(shapes, node.inputs()[row.has_axis_first ? 0 : count]);
  if (axis.size() != 1 || !shape.has_rank()) return 0;
  return axis[0] == -1 || axis[0] == shape.rank() - 1 ? count : 0;
}

int64_t ChannelsOf(const ShapeMap& shapes, Endpoint tensor) {
  const graph::PartialShape& shape = shapes.Of(tensor);
  return shape.has_rank() && shape.rank() > 0 ? shape.dim(-1) : -1;
}

}  // namespace optfarm::transforms
