// rename_op: replaces an op by another with the same inputs and attributes.

#include <string>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RenameOp(graph::Graph* graph, TransformContext* context) {
  const std::string from = context->arguments().String("old_op_name");
  const std::string to = context->arguments().String("new_op_name");
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (node->op() != from) continue;
    node->mutable_def()->set_op(to);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RenameOpTransform() {
  return {.name = "rename_op",
          .summary = "Replaces an op with another; inputs and attributes stay.",
          .parameters = {{.name = "old_op_name",
                          .help = "The op to replace.",
                          .required = true},
                         {.name = "new_op_name",
                          .help = "The replacement.",
                          .required = true}},
          .run = RenameOp};
}

}  // namespace optfarm::transforms
