#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/quantizing/quantize_passes.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;

void QuantizePlaceholders(const FloatRange& range, TransformContext* context,
                          Graph* graph) {
  const std::vector<NodeId> ids = graph->Ids();
  for (size_t i = 0; i < ids.size(); ++i) {
    graph::Node* node = graph->mutable_node(ids[i]);
    if (node->op() != "Placeholder") continue;
    const absl::StatusOr<tensorflow::DataType> dtype =
        graph::GetType(node->def(), "dtype");
    if (!dtype.ok() || *dtype != tensorflow::DT_FLOAT) {
      context->Skip(node->name(), "it is not a float placeholder");
      continue;
    }
    const std::string base = absl::StrCat(node->name(), "_eightbit/");
    graph::SetType(node->mutable_def(), "dtype", tensorflow::DT_QUINT8);
    const NodeId next = i + 1 < ids.size() ? ids[i + 1] : graph::kNoNode;
    const NodeId min = graph->Add(
        MakeScalarConst(absl::StrCat(base, "min"), range.min), {}, {}, next);
    const NodeId max = graph->Add(
        MakeScalarConst(absl::StrCat(base, "max"), range.max), {}, {}, next);
    tensorflow::NodeDef def =
        MakeNode(absl::StrCat(base, "dequantize"), "Dequantize", *node);
    graph::SetType(&def, "T", tensorflow::DT_QUINT8);
    graph::SetString(&def, "mode", "MIN_FIRST");
    const NodeId floats =
        graph->Add(std::move(def), {{ids[i], 0}, {min, 0}, {max, 0}}, {}, next);
    graph->RedirectUses({ids[i], 0}, {floats, 0}, floats);
    context->CountChange();
  }
}

}  // namespace optfarm::transforms
