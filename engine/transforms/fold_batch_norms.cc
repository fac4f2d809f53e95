// fold_batch_norms: multiplies a convolution's weights by the constant factors
// that its result is multiplied with, so that the multiplication disappears.
// The addition of the batch norm's offset stays.

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/transforms/builtin_transforms.h"
#include "engine/transforms/constant_nodes.h"
#include "engine/transforms/convolution_weights.h"
#include "engine/transforms/pattern.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// The weights with the factors in them.
// ERRORS: why this match cannot be folded.
absl::StatusOr<Tensor> FoldedWeights(const Graph& graph, const Match& match,
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
  if (conv.op() != "MatMul" && DataFormat(conv) != "NHWC") {
    return absl::FailedPreconditionError(
        "the factors belong to the last dimension, which in data_format NCHW "
        "is not the channels");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Tensor weights,
                           FloatConstValue(graph.node(match["weights"])));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor scale,
                           FloatConstValue(graph.node(match["scale"])));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           OutputChannels(conv, weights));
  if (scale.rank() != 1 || scale.dim(0) != channels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Mul constant input to batch norm has bad shape: ",
        scale.shape().ToString(), " for ", channels, " output channels"));
  }
  return ScaledWeights(conv, weights, scale.flat<float>());
}

void Fold(const Match& match, const Tensor& weights, Graph* graph) {
  const NodeId conv = match["conv"];
  const NodeId mul = match["mul"];
  const NodeId scale = match["scale"];
  SetConstValue(graph->mutable_node(match["weights"]), weights);
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
    const absl::StatusOr<Tensor> weights =
        FoldedWeights(*graph, match, *context);
    if (weights.ok()) {
      Fold(match, *weights, graph);
      context->CountChange();
    } else {
      context->Skip(graph->node(match["mul"]).name(),
                    weights.status().message());
    }
    return absl::OkStatus();
  });
}

}  // namespace

TransformDef FoldBatchNormsTransform() {
  return {.name = "fold_batch_norms",
          .summary =
              "Folds the multiplication after a convolution or matrix "
              "product into its weights.",
          .parameters = {},
          .run = FoldBatchNorms};
}

}  // namespace optfarm::transforms
