// fuse_pad_and_conv: pads by mirroring and convolves in one op.

#include <string>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/folding/fused_convolution.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;

absl::Status CheckMatch(const Graph& graph, const Match& match,
                        const TransformContext& context) {
  OPTFARM_RETURN_IF_ERROR(CheckFusableConvolution(graph.node(match["conv"])));
  OPTFARM_RETURN_IF_ERROR(CheckFusablePad(graph, match["pad"]));
  const std::string shared =
      WhyShared(graph, context, match["pad"], match["conv"]);
  if (!shared.empty()) return absl::FailedPreconditionError(shared);
  return absl::OkStatus();
}

void Fuse(const Match& match, const TransformContext& context, Graph* graph) {
  const NodeId conv = match["conv"];
  const graph::Node& pad = graph->node(match["pad"]);
  const std::string mode = graph::GetString(pad.def(), "mode").value_or("");
  BecomeFused(conv, "FusedPadConv2D",
              {pad.inputs()[0], pad.inputs()[1], graph->node(conv).inputs()[1]},
              {match["pad"]}, context, graph);
  graph::SetString(graph->mutable_node(conv)->mutable_def(), "mode", mode);
}

}  // namespace

absl::Status FusePadAndConv(Graph* graph, TransformContext* context) {
  const Pattern pattern =
      Inner("Conv2D", "conv",
            {Inner("MirrorPad", "pad", {Leaf("*", "x"), Leaf("*", "paddings")}),
             Leaf("*", "filter")});
  return FuseMatches(graph, pattern, context, CheckMatch,
                     [&](const Match& match) { Fuse(match, *context, graph); });
}

TransformDef FusePadAndConvTransform() {
  return {.name = "fuse_pad_and_conv",
          .summary = "Fuses MirrorPad into the following convolution.",
          .parameters = {},
          .run = FusePadAndConv};
}

}  // namespace optfarm::transforms
