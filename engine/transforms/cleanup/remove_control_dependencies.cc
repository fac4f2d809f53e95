// remove_control_dependencies: removes all control edges.

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RemoveControlDependencies(graph::Graph* graph,
                                       TransformContext* context) {
  for (graph::NodeId id : graph->Ids()) {
    if (graph->node(id).control_inputs().empty()) continue;
    graph->ClearControlInputs(id);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveControlDependenciesTransform() {
  return {.name = "remove_control_dependencies",
          .summary = "Removes all control edges.",
          .parameters = {},
          .run = RemoveControlDependencies};
}

}  // namespace optfarm::transforms
