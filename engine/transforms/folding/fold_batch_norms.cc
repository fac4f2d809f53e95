// fold_batch_norms: multiplies a convolution's weights by the constant factors
// that its result is multiplied with, so that the multiplication disappears.
// The addition of the batch norm's offset stays.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

// The factors to put into the weights.
// ERRORS: why this match cannot be folded.
absl::StatusOr<std::vector<float>> Factors(const Graph& graph,
                                           const Match& match,
                                           const TransformContext& context) {
  const graph::Node& conv = graph.node(match["conv"]);
  for (const auto& [node, consumer] :
       {std::pair(match["conv"], match["mul"]),
        std::pair(match["weights"], match["conv"]),
        std::pair(match["scale"], match["mul"])}) {
    const std::string shared = WhyShared(graph, context, node, consumer);
    if (!shared.empty()) return absl::FailedPreconditionError(shared);
  }
  if (HasOtherOutputsRead(graph.node(match["mul"]))) {
    return absl::FailedPreconditionError("an output it does not have is read");
  }
  if (!graph::IsFloatMatMul(conv.op()) && !graph::IsNhwc(conv.def())) {
    return absl::FailedPreconditionError(
        "the factors belong to the last dimension, which in data_format NCHW "
        "is not the channels");
  }
  const graph::Node& weights = graph.node(match["weights"]);
  OPTFARM_ASSIGN_OR_RETURN(const FloatView view, FloatView::Of(weights));
  OPTFARM_ASSIGN_OR_RETURN(const FloatView scale,
                           FloatView::Of(graph.node(match["scale"])));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           OutputChannels(conv, view.shape()));
  if (scale.shape().rank() != 1 || scale.shape().dim(0) != channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Mul constant input to batch norm has bad shape: ",
        scale.shape().ToString(), " for ", channels, " output channels"));
  }
  return std::vector<float>(scale.values().begin(), scale.values().end());
}

void Fold(const Match& match, absl::Span<const float> factors, Graph* graph) {
  const NodeId conv = match["conv"];
  const NodeId mul = match["mul"];
  const NodeId scale = match["scale"];
  ScaleWeights(graph->node(conv), factors,
               graph->mutable_node(match["weights"]));
  for (NodeId source : {mul, scale}) {
    const graph::Node& node = graph->node(source);
    for (NodeId control : node.control_inputs()) {
      if (control != scale) graph->AddControlInput(conv, control);
    }
  }
  const std::string name = graph->node(mul).name();
  graph->RedirectUses({mul, 0}, {conv, 0});
  graph->RedirectControlUses(mul, conv);
  graph->RemoveAll({mul, scale});
  graph->Rename(conv, name);
}

absl::Status FoldBatchNorms(Graph* graph, TransformContext* context) {
  const Pattern pattern = Inner(
      "Mul", "mul",
      {Inner(kScalableOps, "conv", {Leaf("*", "x"), Leaf("Const", "weights")}),
       Leaf("Const", "scale")});
  return RewriteMatches(graph, pattern, [&](const Match& match) {
    const absl::StatusOr<std::vector<float>> factors =
        Factors(*graph, match, *context);
    if (factors.ok()) {
      Fold(match, *factors, graph);
      context->CountChange();
    } else {
      context->Skip(graph->node(match["mul"]).name(),
                    factors.status().message());
    }
    return absl::OkStatus();
  });
}

}  // namespace

TransformDef FoldBatchNormsTransform() {
  return {.name = "fold_batch_norms",
          .summary =
              "Folds the multiplication after a convolution or matrix "
              "multiply into its weights.",
          .parameters = {},
          .run = FoldBatchNorms};
}

}  // namespace optfarm::transforms
