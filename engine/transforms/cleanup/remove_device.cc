// remove_device: forgets on which device nodes were to run.

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status RemoveDevice(graph::Graph* graph, TransformContext* context) {
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (node->device().empty()) continue;
    node->mutable_def()->clear_device();
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveDeviceTransform() {
  return {.name = "remove_device",
          .summary = "Removes the device from all nodes.",
          .parameters = {},
          .run = RemoveDevice};
}

}  // namespace optfarm::transforms
