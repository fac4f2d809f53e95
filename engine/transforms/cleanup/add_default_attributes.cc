// add_default_attributes: writes out the attributes that a node leaves to their
// defaults, for transforms that read them.

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status AddDefaultAttributes(graph::Graph* graph,
                                  TransformContext* context) {
  absl::flat_hash_set<std::string> functions;
  for (const auto& function : graph->library().function()) {
    functions.insert(function.signature().name());
  }
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (functions.contains(node->op())) continue;
    const tensorflow::OpDef* op_def = graph::FindOpDef(node->op());
    if (op_def == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          "Op type not registered '", node->op(), "' of node '", node->name(),
          "'; its default attributes are not known"));
    }
    const int before = static_cast<int>(node->def().attr().size());
    OPTFARM_RETURN_IF_ERROR(
        graph::ApplyDefaultAttributes(*op_def, node->mutable_def()));
    if (static_cast<int>(node->def().attr().size()) != before) {
      context->CountChange();
    }
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef AddDefaultAttributesTransform() {
  return {
      .name = "add_default_attributes",
      .summary = "Adds attributes that nodes omit, with their default values.",
      .parameters = {},
      .run = AddDefaultAttributes};
}

}  // namespace optfarm::transforms
