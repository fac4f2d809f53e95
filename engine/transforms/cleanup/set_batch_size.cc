// set_batch_size: lets a model that was frozen for one number of items take
// another. The inputs' shapes are the easy part; models also carry the number
// in the constants that Reshape reads.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/batch_size.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::PartialShape;

struct Input {
  NodeId node = graph::kNoNode;
  PartialShape shape;
};

// The placeholders that carry the batch: those the user names, else the
// declared inputs, else all.
absl::StatusOr<std::vector<Input>> FindInputs(const Graph& graph,
                                              TransformContext* context) {
  const std::vector<std::string> named = context->arguments().Strings("input");
  std::vector<NodeId> candidates;
  for (const std::string& name : named) {
    OPTFARM_ASSIGN_OR_RETURN(const NodeId id, graph.Get(name));
    candidates.push_back(id);
  }
  if (named.empty()) {
    for (NodeId id : graph.Ids()) {
      const graph::Node& node = graph.node(id);
      if (graph::IsPlaceholder(node.op()) &&
          (context->inputs().empty() || context->IsInput(node.name()))) {
        candidates.push_back(id);
      }
    }
  }
  std::vector<Input> inputs;
  for (NodeId id : candidates) {
    const graph::Node& node = graph.node(id);
    const tensorflow::AttrValue* shape = node.FindAttr("shape");
    PartialShape known;
    if (shape != nullptr) {
      OPTFARM_ASSIGN_OR_RETURN(known, PartialShape::FromProto(shape->shape()));
    }
    if (graph::IsPlaceholder(node.op()) && known.has_rank() &&
        known.rank() > 0) {
      inputs.push_back({id, std::move(known)});
    } else if (!named.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the input '", node.name(), "' (", node.op(), ") has the shape ",
          known.ToString(), ", which has no batch dimension"));
    } else {
      context->Skip(node.name(), absl::StrCat("its shape ", known.ToString(),
                                              " has no batch dimension"));
    }
  }
  return inputs;
}

// The size that all have now.
absl::StatusOr<int64_t> OldSize(const Graph& graph,
                                const std::vector<Input>& inputs) {
  if (inputs.empty()) {
    return absl::InvalidArgumentError(
        "there is no Placeholder whose shape has a batch dimension");
  }
  for (const Input& input : inputs) {
    if (input.shape.dim(0) != inputs[0].shape.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the inputs '", graph.node(inputs[0].node).name(), "' ",
          inputs[0].shape.ToString(), " and '", graph.node(input.node).name(),
          "' ", input.shape.ToString(),
          " do not begin with the same dimension; name those that carry the "
          "batch with 'input'"));
    }
  }
  return inputs[0].shape.dim(0);
}

absl::Status SetBatchSize(Graph* graph, TransformContext* context) {
  BatchChange change;
  change.to = context->arguments().Int("batch_size");
  if (change.to == 0 || change.to < graph::kUnknownDim) {
    return absl::InvalidArgumentError(
        absl::StrCat("'batch_size' is ", change.to,
                     "; it must be 1 or more, or -1 to leave it open"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Input> inputs,
                           FindInputs(*graph, context));
  OPTFARM_ASSIGN_OR_RETURN(change.from, OldSize(*graph, inputs));
  if (change.from == change.to) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(graph::ShapeMap before, graph::InferShapes(*graph));
  for (const Input& input : inputs) {
    PartialShape shape = input.shape;
    shape.set_dim(0, change.to);
    auto* attributes =
        graph->mutable_node(input.node)->mutable_def()->mutable_attr();
    *(*attributes)["shape"].mutable_shape() = shape.ToProto();
    context->CountChange();
  }
  BatchSizeEditor editor(change, std::move(before), graph);
  if (absl::Status changed = editor.Run(); !changed.ok()) {
    return Annotate(changed, absl::StrCat("changing the batch size from ",
                                          change.from, " to ", change.to));
  }
  context->CountChange(editor.changed_nodes());
  for (const graph::Endpoint& tensor : editor.uncertain()) {
    context->Skip(graph->node(tensor.node).name(),
                  "its shape is not known: it may hold the old batch size");
  }
  for (NodeId id : graph->Ids()) {
    graph->mutable_node(id)->mutable_def()->mutable_attr()->erase(
        "_output_shapes");
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef SetBatchSizeTransform() {
  return {
      .name = "set_batch_size",
      .summary =
          "Changes the batch size of a model, in its inputs and wherever the "
          "graph stores it.",
      .parameters =
          {{.name = "batch_size",
            .type = ParameterType::kInt,
            .help = "The new size; -1: unknown.",
            .required = true},
           {.name = "input",
            .help = "Input whose first dimension is the batch. Default: all "
                    "declared inputs that have dimensions.",
            .repeated = true}},
      .run = SetBatchSize};
}

}  // namespace optfarm::transforms
