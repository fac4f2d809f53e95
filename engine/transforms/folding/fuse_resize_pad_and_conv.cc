// fuse_resize_pad_and_conv: resizes, pads and convolves in one op, which needs
// no memory for the enlarged picture.

#include <string>
#include <vector>

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
  const graph::Node& conv = graph.node(match["conv"]);
  OPTFARM_RETURN_IF_ERROR(CheckFusableConvolution(conv));
  OPTFARM_RETURN_IF_ERROR(
      CheckFusableResize(graph.node(match["resize"]), conv));
  OPTFARM_RETURN_IF_ERROR(CheckFusablePad(graph, match["pad"]));
  for (const auto& [node, consumer] :
       {std::pair(match["pad"], match["conv"]),
        std::pair(match["resize"], match["pad"])}) {
    const std::string shared = WhyShared(graph, context, node, consumer);
    if (!shared.empty()) return absl::FailedPreconditionError(shared);
  }
  return absl::OkStatus();
}

void Fuse(const Match& match, const TransformContext& context, Graph* graph) {
  const NodeId conv = match["conv"];
  const graph::Node& resize = graph->node(match["resize"]);
  const graph::Node& pad = graph->node(match["pad"]);
  const bool aligns_corners =
      graph::GetBoolOr(resize.def(), "align_corners", false).value_or(false);
  const std::string mode = graph::GetString(pad.def(), "mode").value_or("");
  BecomeFused(conv, "FusedResizeAndPadConv2D",
              {resize.inputs()[0], resize.inputs()[1], pad.inputs()[1],
               graph->node(conv).inputs()[1]},
              {match["resize"], match["pad"]}, context, graph);
  tensorflow::NodeDef* def = graph->mutable_node(conv)->mutable_def();
  graph::SetBool(def, "resize_align_corners", aligns_corners);
  graph::SetString(def, "mode", mode);
}

}  // namespace

absl::Status FuseResizePadAndConv(Graph* graph, TransformContext* context) {
  const Pattern pattern =
      Inner("Conv2D", "conv",
            {Inner("MirrorPad", "pad",
                   {Leaf("ResizeBilinear", "resize"), Leaf("*", "paddings")}),
             Leaf("*", "filter")});
  return FuseMatches(graph, pattern, context, CheckMatch,
                     [&](const Match& match) { Fuse(match, *context, graph); });
}

TransformDef FuseResizePadAndConvTransform() {
  return {.name = "fuse_resize_pad_and_conv",
          .summary =
              "Fuses ResizeBilinear and MirrorPad into the following "
              "convolution.",
          .parameters = {},
          .run = FuseResizePadAndConv};
}

}  // namespace optfarm::transforms
