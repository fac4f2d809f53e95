// dequantize_wide: where a 32-bit result is requantized to 8 bits only to
// become float, lets Dequantize read the 32 bits. What follows in float then
// sees the exact integer result (formula 11 of docs/quantization.md), and no
// range needs to be known for it.
//
//   Dequantize[quint8](Requantize(q:0, q:1, q:2, min, max):0..2)
//   becomes Dequantize[qint32](q:0, q:1, q:2)
//
// The same with RequantizePerChannel, when nothing else reads its quantized
// values.

#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// Whether the quantized values of a layer go nowhere else, and its Relu6, if
// any, is not in the range that is passed over.
bool MayPassOver(const Graph& graph, NodeId requantize, NodeId reader) {
  const graph::Node& node = graph.node(requantize);
  for (const graph::Use& use : node.uses()) {
    if (use.consumer != reader) return false;
  }
  const graph::Node& range = graph.node(node.inputs()[3].node);
  return graph::HasRole(range.op(),
                        graph::OpRole::kRequantizationRangePerChannel) &&
         graph::GetFloat(range.def(), "clip_value_max").value_or(1.0f) <= 0;
}

// A layer with a range for each channel: Dequantize reads as many, along the
// last dimension.
bool ReadAccumulators(NodeId id, const TransformContext& context,
                      Graph* graph) {
  const NodeId quantized = graph->node(id).inputs()[0].node;
  const graph::Node& requantize = graph->node(quantized);
  if (!graph::HasRole(requantize.op(), graph::OpRole::kRequantizePerChannel) ||
      requantize.inputs().size() != 5 || context.IsOutput(requantize.name()) ||
      !MayPassOver(*graph, quantized, id)) {
    return false;
  }
  const NodeId accumulators = requantize.inputs()[0].node;
  if (!ReadsValuesAndRange(requantize, 0, accumulators)) return false;
  const bool is_matrix =
      graph::RowOf(graph->node(accumulators).op()).layer.product ==
      graph::LayerProduct::kMatrix;
  graph->SetInputs(id, ValuesAndRange(accumulators));
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  graph::SetType(def, "T", tensorflow::DT_QINT32);
  graph::SetString(def, "mode", "SCALED");
  graph::SetInt(def, "axis", is_matrix ? 1 : 3);
  return true;
}

absl::Status DequantizeWide(Graph* graph, TransformContext* context) {
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsDequantize(node) || node.inputs().empty()) continue;
    if (ReadAccumulators(id, *context, graph)) {
      context->CountChange();
      continue;
    }
    const NodeId quantized = node.inputs()[0].node;
    const graph::Node& requantize = graph->node(quantized);
    if (!graph::HasRole(requantize.op(), graph::OpRole::kRequantize) ||
        !ReadsValuesAndRange(node, 0, quantized) ||
        requantize.inputs().size() != 5) {
      continue;
    }
    const NodeId accumulators = requantize.inputs()[0].node;
    if (!ReadsValuesAndRange(requantize, 0, accumulators)) {
      context->Skip(node.name(),
                    "the range of the 32-bit result comes from another node");
      continue;
    }
    graph->SetInputs(id, ValuesAndRange(accumulators));
    graph::SetType(graph->mutable_node(id)->mutable_def(), "T",
                   tensorflow::DT_QINT32);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef DequantizeWideTransform() {
  return {.name = "dequantize_wide",
          .summary =
              "Dequantizes 32-bit accumulators directly, without requantizing "
              "them to 8 bits first.",
          .parameters = {},
          .run = DequantizeWide};
}

}  // namespace optfarm::transforms
