// dequantize_wide: where a 32-bit result is requantized to 8 bits only to
// become float, lets Dequantize read the 32 bits. What follows in float then
// sees the exact integer result (formula 11 of docs/quantization.md), and no
// range needs to be known for it.
//
//   Dequantize[quint8](Requantize(q:0, q:1, q:2, min, max):0..2)
//   becomes Dequantize[qint32](q:0, q:1, q:2)

#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/builtin_transforms.h"
#include "engine/transforms/quantized_op_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

absl::Status DequantizeWide(Graph* graph, TransformContext* context) {
  for (NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (!IsCodesToFloat(node) || node.inputs().empty()) continue;
    const NodeId narrow = node.inputs()[0].node;
    const graph::Node& requantize = graph->node(narrow);
    if (requantize.op() != "Requantize" ||
        !ReadsCodesAndRange(node, 0, narrow) ||
        requantize.inputs().size() != 5) {
      continue;
    }
    const NodeId wide = requantize.inputs()[0].node;
    if (!ReadsCodesAndRange(requantize, 0, wide)) {
      context->Skip(node.name(),
                    "the range of the 32-bit result comes from another node");
      continue;
    }
    graph->SetInputs(id, CodesAndRange(wide));
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
              "Turns 32-bit integer results into float directly where they "
              "would be cut to 8 bits first.",
          .parameters = {},
          .run = DequantizeWide};
}

}  // namespace optfarm::transforms
