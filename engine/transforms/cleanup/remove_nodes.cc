// remove_nodes: takes pass-through nodes such as Identity out of the graph.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

bool IsSwitch(const graph::Node& node) {
  return graph::IsSwitch(node.op()) || node.op() == "_SwitchN";
}

// Why the node has to stay; "" when it can go.
std::string WhyKept(const Graph& graph, NodeId id,
                    const TransformContext& context) {
  const graph::Node& node = graph.node(id);
  const Endpoint source = node.inputs()[0];
  if (context.IsInputOrOutput(node.name())) {
    return "it is an input or output of the graph";
  }
  if (source.node == id) return "it reads itself";
  for (const graph::Use& use : node.uses()) {
    if (use.port > 0) return "an output other than its first is used";
    // A control edge from a Switch does not say which branch was taken; the
    // node between says it.
    if (use.is_control() && IsSwitch(graph.node(source.node))) {
      return absl::StrCat("it tells '", graph.node(use.consumer).name(),
                          "' which branch of a condition was taken");
    }
  }
  return "";
}

// Lets consumers read the first input instead, and wait for what the node
// waited for.
void Bypass(NodeId id, const TransformContext& context, Graph* graph) {
  const std::vector<Endpoint> inputs(graph->node(id).inputs().begin(),
                                     graph->node(id).inputs().end());
  const std::vector<NodeId> controls(graph->node(id).control_inputs().begin(),
                                     graph->node(id).control_inputs().end());
  std::vector<NodeId> consumers;
  for (const graph::Use& use : graph->node(id).uses()) {
    consumers.push_back(use.consumer);
  }
  graph->RedirectUses({id, 0}, inputs[0]);
  graph->RedirectControlUses(id, inputs[0].node);
  for (NodeId consumer : consumers) {
    for (NodeId control : controls) graph->AddControlInput(consumer, control);
  }
  graph->Remove(id);
  // What only this node read, for instance the range of a FakeQuant, is not
  // needed any more.
  for (size_t i = 1; i < inputs.size(); ++i) {
    const NodeId other = inputs[i].node;
    if (graph->Has(other) && graph->node(other).uses().empty() &&
        !context.IsInputOrOutput(graph->node(other).name())) {
      graph->Remove(other);
    }
  }
}

absl::Status RemoveNodes(Graph* graph, TransformContext* context) {
  const TransformArguments& arguments = context->arguments();
  const int64_t max_inputs = arguments.Int("max_inputs");
  for (const std::string& op : arguments.Strings("op")) {
    for (NodeId id : graph->Ids()) {
      if (!graph->Has(id) || graph->node(id).op() != op) continue;
      const int64_t inputs =
          static_cast<int64_t>(graph->node(id).inputs().size());
      if (inputs < 1 || inputs > max_inputs) continue;
      const std::string kept = WhyKept(*graph, id, *context);
      if (kept.empty()) {
        Bypass(id, *context, graph);
        context->CountChange();
      } else {
        context->Skip(graph->node(id).name(), kept);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef RemoveNodesTransform() {
  return {.name = "remove_nodes",
          .summary =
              "Removes all nodes of some ops; their readers read their first "
              "input instead.",
          .parameters = {{.name = "op",
                          .help = "Op to remove, for instance Identity.",
                          .repeated = true,
                          .required = true},
                         {.name = "max_inputs",
                          .type = ParameterType::kInt,
                          .help = "Nodes with more data inputs are kept.",
                          .default_value = "1"}},
          .run = RemoveNodes};
}

}  // namespace optfarm::transforms
