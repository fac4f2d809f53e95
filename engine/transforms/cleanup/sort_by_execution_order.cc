// sort_by_execution_order: puts each node after all it depends on.

#include <vector>

#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

absl::Status SortByExecutionOrder(graph::Graph* graph,
                                  TransformContext* context) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order,
                           graph::ExecutionOrder(*graph));
  const std::vector<graph::NodeId> before = graph->Ids();
  for (size_t i = 0; i < order.size(); ++i) {
    graph->MoveToEnd(order[i]);
    if (order[i] != before[i]) context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef SortByExecutionOrderTransform() {
  return {.name = "sort_by_execution_order",
          .summary = "Sorts the nodes so that each comes after its inputs.",
          .parameters = {},
          .run = SortByExecutionOrder};
}

}  // namespace optfarm::transforms
