// backport_concatv2: turns ConcatV2 into Concat, which old runtimes know and
// quantize_nodes can quantize.

#include <vector>

#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status BackportConcatv2(graph::Graph* graph, TransformContext* context) {
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (node->op() != "ConcatV2" || node->inputs().empty()) continue;
    const absl::StatusOr<tensorflow::DataType> axis_type =
        graph::GetTypeOr(node->def(), "Tidx", tensorflow::DT_INT32);
    if (!axis_type.ok() || *axis_type != tensorflow::DT_INT32) {
      context->Skip(node->name(),
                    "its axis is not int32, which is all that Concat takes");
      continue;
    }
    // The axis is the last data input there and the first here.
    std::vector<graph::Endpoint> inputs = {node->inputs().back()};
    inputs.insert(inputs.end(), node->inputs().begin(),
                  node->inputs().end() - 1);
    node->mutable_def()->set_op("Concat");
    node->mutable_def()->mutable_attr()->erase("Tidx");
    graph->SetInputs(id, inputs);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef BackportConcatv2Transform() {
  return {.name = "backport_concatv2",
          .summary = "Turns ConcatV2 into Concat.",
          .parameters = {},
          .run = BackportConcatv2};
}

}  // namespace optfarm::transforms
