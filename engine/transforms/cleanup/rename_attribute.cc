// rename_attribute: gives one attribute another name.

#include <string>
#include <utility>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RenameAttribute(graph::Graph* graph, TransformContext* context) {
  const std::string from = context->arguments().String("old_attribute_name");
  const std::string to = context->arguments().String("new_attribute_name");
  const std::string op = context->arguments().String("op_name");
  for (graph::NodeId id : graph->Ids()) {
    tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
    if (!op.empty() && op != "*" && def->op() != op) continue;
    auto* attributes = def->mutable_attr();
    const auto found = attributes->find(from);
    if (found == attributes->end() || from == to) continue;
    if (attributes->find(to) != attributes->end()) {
      // TensorFlow loses the old value here.
      context->Skip(def->name(), "it has an attribute of the new name already");
      continue;
    }
    tensorflow::AttrValue value = std::move(found->second);
    attributes->erase(from);
    (*attributes)[to] = std::move(value);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RenameAttributeTransform() {
  return {
      .name = "rename_attribute",
      .summary = "Renames an attribute of nodes.",
      .parameters = {{.name = "old_attribute_name",
                      .help = "The attribute to rename.",
                      .required = true},
                     {.name = "new_attribute_name",
                      .help = "Its new name.",
                      .required = true},
                     {.name = "op_name",
                      .help = "Only nodes of this op; '*' or nothing: all."}},
      .run = RenameAttribute};
}

}  // namespace optfarm::transforms
