// set_device: says on which device nodes are to run.

#include <string>

#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status SetDevice(graph::Graph* graph, TransformContext* context) {
  const std::string device = context->arguments().String("device");
  const bool if_default = context->arguments().Bool("if_default");
  for (graph::NodeId id : graph->Ids()) {
    graph::Node* node = graph->mutable_node(id);
    if (node->device() == device || (if_default && !node->device().empty())) {
      continue;
    }
    node->mutable_def()->set_device(device);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef SetDeviceTransform() {
  return {.name = "set_device",
          .summary = "Sets the device of all nodes.",
          .parameters = {{.name = "device",
                          .help = "The device, for instance /cpu:0."},
                         {.name = "if_default",
                          .type = ParameterType::kBool,
                          .help = "Only nodes that have no device yet.",
                          .default_value = "false"}},
          .run = SetDevice};
}

}  // namespace optfarm::transforms
