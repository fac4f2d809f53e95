#include "engine/transforms/quantizing/idle_biases.h"

#include <algorithm>
#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

// Places of a layer's inputs.
constexpr size_t kQuantized = 1, kBias = 2;

bool IsLayer(const Node& node) {
  return graph::IsQuantizedLayer(node.op()) && node.inputs().size() > kBias;
}

bool IsZero(const Node& constant) {
  if (!IsConst(constant) || constant.uses().size() != 1) return false;
  const auto value = FloatView::Of(constant);
  return value.ok() &&
         std::all_of(value->values().begin(), value->values().end(),
                     [](float v) { return v == 0; });
}

// A sum over channels alone, with a bias: no padding comes into it.
bool IsProductOfPixels(const Graph& graph, const Node& node) {
  if (!IsLayer(node)) return false;
  const graph::LayerProduct product = graph::RowOf(node.op()).layer.product;
  if (product == graph::LayerProduct::kMatrix) return true;
  if (product != graph::LayerProduct::kConvolution) return false;
  const Node& quantized = graph.node(node.inputs()[kQuantized].node);
  if (!IsConst(quantized)) return false;
  const auto value = graph::GetTensor(quantized.def(), "value");
  if (!value.ok()) return false;
  const auto& shape = (*value)->tensor_shape();
  return shape.dim_size() == 4 && shape.dim(0).size() == 1 &&
         shape.dim(1).size() == 1;
}

bool TakesOffMeans(const Node& node) {
  return graph::HasRole(node.op(), graph::OpRole::kBatchNorm) &&
         graph::GetBoolOr(node.def(), "is_training", true).value_or(false) &&
         std::all_of(node.uses().begin(), node.uses().end(),
                     [](const graph::Use& use) { return use.port <= 0; });
}

// The same numbers in other quantized values.
bool HandsOn(const Node& node) {
  const graph::OpRole role = graph::RowOf(node.op()).role;
  return role == graph::OpRole::kDequantize ||
         role == graph::OpRole::kRequantizePerChannel ||
         role == graph::OpRole::kQuantize;
}

bool IsTakenUp(const Graph& graph, NodeId layer,
               absl::Span<const graph::TensorName> outputs) {
  std::vector<NodeId> open = {layer};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    const Node& node = graph.node(id);
    bool is_read = false;
    for (const graph::TensorName& output : outputs) {
      if (output.node == node.name()) return false;
    }
    for (const graph::Use& use : node.uses()) {
      // Ranges go where the quantized values go.
      if (use.port != 0) continue;
      is_read = true;
      const Node& reader = graph.node(use.consumer);
      if (use.input != 0) return false;
      if (HandsOn(reader)) {
        open.push_back(use.consumer);
      } else if (!TakesOffMeans(reader) && !IsProductOfPixels(graph, reader)) {
        return false;
      }
    }
    if (!is_read) return false;
  }
  return true;
}

}  // namespace

IdleBiases FindIdleBiases(const Graph& graph,
                          absl::Span<const graph::TensorName> outputs) {
  IdleBiases idle;
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (!IsLayer(node) || graph::RowOf(node.op()).layer.has_relu) continue;
    const Node& bias = graph.node(node.inputs()[kBias].node);
    if (IsZero(bias) && IsTakenUp(graph, id, outputs)) idle.insert(bias.name());
  }
  return idle;
}

}  // namespace optfarm::transforms
