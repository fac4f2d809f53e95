// remove_attribute: erases one attribute from nodes.

#include <string>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RemoveAttribute(graph::Graph* graph, TransformContext* context) {
  const std::string attribute = context->arguments().String("attribute_name");
  const std::string op = context->arguments().String("op_name");
  for (graph::NodeId id : graph->Ids()) {
    tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
    if (!op.empty() && op != "*" && def->op() != op) continue;
    context->CountChange(
        static_cast<int64_t>(def->mutable_attr()->erase(attribute)));
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveAttributeTransform() {
  return {
      .name = "remove_attribute",
      .summary = "Removes an attribute from nodes.",
      .parameters = {{.name = "attribute_name",
                      .help = "The attribute to remove.",
                      .required = true},
                     {.name = "op_name",
                      .help = "Only nodes of this op; '*' or nothing: all."}},
      .run = RemoveAttribute};
}

}  // namespace optfarm::transforms
