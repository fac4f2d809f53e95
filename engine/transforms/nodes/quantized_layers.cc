#include "engine/transforms/nodes/quantized_layers.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

constexpr char kInBlocks[] = "DequantizeBlocks";

// Nodes between a layer and what makes its values; more are no chain.
constexpr int kMostMovements = 16;

bool IsLayer(const Node& node) {
  static const auto* const kLayers = new absl::flat_hash_set<std::string>{
      "Conv2D", "DepthwiseConv2dNative", "Conv2DTranspose", "Conv3D",
      "MatMul", "BatchMatMul",           "BatchMatMulV2"};
  return node.inputs().size() >= 2 && kLayers->contains(node.op());
}

// Ops that hand on the values of their first input.
bool IsDataMovement(const Node& node) {
  static const auto* const kOps = new absl::flat_hash_set<std::string>{
      "Identity", "Reshape",   "Transpose",    "Squeeze", "ExpandDims",  "Pad",
      "PadV2",    "MirrorPad", "StridedSlice", "MaxPool", "SpaceToDepth"};
  return !node.inputs().empty() && kOps->contains(node.op());
}

// The DequantizeLinear or DequantizeBlocks that the values come from; nullptr
// where they do not.
const Node* DequantizationOf(const Graph& graph, NodeId id) {
  for (int movements = 0;
       movements < kMostMovements && IsDataMovement(graph.node(id));
       ++movements) {
    id = graph.node(id).inputs()[0].node;
  }
  const Node& node = graph.node(id);
  const bool dequantizes =
      graph::IsDequantizeLinear(node.op()) || node.op() == kInBlocks;
  return dequantizes && node.inputs().size() >= 2 ? &node : nullptr;
}

bool HasManyScales(const Graph& graph, const Node& dequantize) {
  const Node& scale = graph.node(dequantize.inputs()[1].node);
  if (!IsConst(scale)) return false;
  const auto value = ConstValue(scale);
  return value.ok() && value->num_elements() > 1;
}

int BitsOf(const Node& dequantize) {
  if (dequantize.op() == kInBlocks) return 4;
  const auto type =
      graph::GetTypeOr(dequantize.def(), "Q", tensorflow::DT_INT8);
  const bool is_wide = type.ok() && (*type == tensorflow::DT_INT16 ||
                                     *type == tensorflow::DT_UINT16);
  return static_cast<int>(
      graph::GetIntOr(dequantize.def(), "bits", 8).value_or(8) *
      (is_wide ? 2 : 1));
}

}  // namespace

QuantizedLayers CountQuantizedLayers(const Graph& graph) {
  QuantizedLayers found;
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (!IsLayer(node)) continue;
    ++found.layers;
    const Node* weights = DequantizationOf(graph, node.inputs()[1].node);
    if (weights == nullptr) continue;
    const int bits = BitsOf(*weights);
    found.weight_bits =
        found.weight_bits == 0 ? bits : std::min(found.weight_bits, bits);
    if (DequantizationOf(graph, node.inputs()[0].node) == nullptr) {
      ++found.weights_only;
    } else {
      ++found.quantized;
    }
    found.in_blocks |= weights->op() == kInBlocks;
    found.per_channel |= HasManyScales(graph, *weights);
  }
  return found;
}

std::string Describe(const QuantizedLayers& found) {
  const char* const part = found.in_blocks     ? "block"
                           : found.per_channel ? "channel"
                                               : "tensor";
  return absl::StrCat(
      found.weight_bits, "-bit weights, a scale for each ", part, ", ",
      found.quantized > 0 ? "" : "float values, ",
      found.quantized > 0 ? found.quantized : found.weights_only, " of ",
      found.layers, " layers");
}

}  // namespace optfarm::transforms
