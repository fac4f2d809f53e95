#include "engine/transforms/cleanup/inference_graph.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

absl::StatusOr<std::vector<NodeId>> FindNodes(
    absl::Span<const std::string> names, const Graph& graph) {
  std::vector<NodeId> ids;
  for (const std::string& name : names) {
    if (name.find(':') != std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' names a tensor; give its node, without ':'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(ids.emplace_back(), graph.Get(name));
  }
  return ids;
}

void MakePlaceholder(NodeId id, tensorflow::DataType type, Graph* graph) {
  const tensorflow::NodeDef old = graph->node(id).def();
  tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
  def->set_op("Placeholder");
  def->clear_device();
  def->clear_attr();
  graph::SetType(def, "dtype", type);
  graph::CopyAttr(old, "shape", def);
  graph::CopyAttr(old, "_output_shapes", def);
  graph->SetInputs(id, {});
  graph->ClearControlInputs(id);
}

// Nobody waits for the node any more.
void DropControlUses(NodeId id, Graph* graph) {
  std::vector<NodeId> consumers;
  for (const graph::Use& use : graph->node(id).uses()) {
    if (use.is_control()) consumers.push_back(use.consumer);
  }
  for (const NodeId consumer : consumers) {
    const auto span = graph->node(consumer).control_inputs();
    const std::vector<NodeId> before(span.begin(), span.end());
    graph->ClearControlInputs(consumer);
    for (const NodeId source : before) {
      if (source != id) graph->AddControlInput(consumer, source);
    }
  }
}

// Consumers read what the node reads. REQUIRES: it has a data input and no
// control uses.
void Splice(NodeId id, Graph* graph) {
  graph->RedirectUses({id, 0}, graph->node(id).inputs()[0]);
  if (graph->node(id).uses().empty()) graph->Remove(id);
}

bool TouchesControlEdges(const graph::Node& node) {
  return !node.control_inputs().empty() ||
         absl::c_any_of(node.uses(),
                        [](const graph::Use& use) { return use.is_control(); });
}

}  // namespace

absl::Status StripUnused(const GraphBorder& border, Graph* graph) {
  if (border.outputs.empty()) {
    return absl::InvalidArgumentError("at least one output must be named");
  }
  const auto& types = border.input_types;
  if (types.size() != 1 && types.size() != border.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        types.size(), " types are given for ", border.inputs.size(),
        " inputs; give one type for all or one for each"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> inputs,
                           FindNodes(border.inputs, *graph));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> outputs,
                           FindNodes(border.outputs, *graph));
  for (size_t i = 0; i < inputs.size(); ++i) {
    MakePlaceholder(inputs[i], types[types.size() == 1 ? 0 : i], graph);
  }
  const std::vector<bool> needed = graph::ReachableFrom(*graph, outputs);
  std::vector<NodeId> unused;
  for (const NodeId id : graph->Ids()) {
    if (!needed[id]) unused.push_back(id);
  }
  graph->RemoveAll(unused);
  return absl::OkStatus();
}

void RemoveTrainingNodes(absl::Span<const std::string> keep, Graph* graph) {
  const auto removable = [&](NodeId id, absl::string_view op) {
    const graph::Node& node = graph->node(id);
    return node.op() == op && node.inputs().size() == 1 &&
           !absl::c_linear_search(keep, node.name());
  };
  for (const NodeId id : graph->Ids()) {
    if (!removable(id, "CheckNumerics")) continue;
    DropControlUses(id, graph);
    Splice(id, graph);
  }
  for (const NodeId id : graph->Ids()) {
    if (!removable(id, "Identity")) continue;
    if (TouchesControlEdges(graph->node(id))) continue;
    Splice(id, graph);
  }
}

absl::StatusOr<PipelineReport> OptimizeForInference(const GraphBorder& border,
                                                    bool fuse_convolutions,
                                                    Graph* graph) {
  OPTFARM_RETURN_IF_ERROR(StripUnused(border, graph));
  RemoveTrainingNodes(border.outputs, graph);
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<TransformStep> steps,
      ParseTransforms(fuse_convolutions
                          ? "fold_old_batch_norms fuse_resize_pad_and_conv "
                            "fuse_resize_and_conv fuse_pad_and_conv"
                          : "fold_old_batch_norms"));
  const auto names = [&](const std::vector<std::string>& nodes) {
    std::vector<graph::TensorName> tensors;
    for (const std::string& node : nodes) {
      // An input that no output needs is gone by now.
      if (graph->Find(node) != graph::kNoNode) tensors.push_back({node, 0});
    }
    return tensors;
  };
  return RunTransforms(graph, steps, names(border.inputs),
                       names(border.outputs));
}

}  // namespace optfarm::transforms
