// rename_node: gives one node another name.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RenameNode(graph::Graph* graph, TransformContext* context) {
  const std::string from = context->arguments().String("old_node_name");
  const std::string to = context->arguments().String("new_node_name");
  OPTFARM_ASSIGN_OR_RETURN(const graph::NodeId id, graph->Get(from));
  if (from == to) return absl::OkStatus();
  if (to.empty() || graph->Find(to) != graph::kNoNode) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name '", to, "' is ",
                     to.empty() ? "empty" : "in use by another node"));
  }
  graph->Rename(id, to);
  context->RecordRename(from, to);
  context->CountChange();
  return absl::OkStatus();
}

}  // namespace

TransformDef RenameNodeTransform() {
  return {.name = "rename_node",
          .summary = "Renames a node.",
          .parameters = {{.name = "old_node_name",
                          .help = "The node to rename.",
                          .required = true},
                         {.name = "new_node_name",
                          .help = "Its new name; no node may have it.",
                          .required = true}},
          .run = RenameNode};
}

}  // namespace optfarm::transforms
