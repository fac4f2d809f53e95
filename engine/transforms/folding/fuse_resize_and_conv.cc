// fuse_resize_and_conv: resizes and convolves in one op. The op pads too, so it
// gets paddings of nothing.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/transforms/folding/fused_convolution.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/loop_nodes.h"

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
  const std::string shared =
      WhyShared(graph, context, match["resize"], match["conv"]);
  if (!shared.empty()) return absl::FailedPreconditionError(shared);
  return absl::OkStatus();
}

void Fuse(const Match& match, bool is_in_loop, const TransformContext& context,
          Graph* graph) {
  const NodeId conv = match["conv"];
  const graph::Node& resize = graph->node(match["resize"]);
  const bool aligns_corners =
      graph::GetBoolOr(resize.def(), "align_corners", false).value_or(false);
  // In a loop a constant has to come about where the convolution does.
  std::vector<NodeId> controls;
  if (is_in_loop) controls.push_back(resize.inputs()[0].node);
  const NodeId paddings = graph->Add(
      MakeConst(absl::StrCat(graph->node(conv).name(), "_dummy_paddings"),
                runtime::Tensor::FromValues<int32_t>({4, 2},
                                                     {0, 0, 0, 0, 0, 0, 0, 0})),
      {}, controls, conv);
  BecomeFused(conv, "FusedResizeAndPadConv2D",
              {resize.inputs()[0],
               resize.inputs()[1],
               {paddings, 0},
               graph->node(conv).inputs()[1]},
              {match["resize"]}, context, graph);
  tensorflow::NodeDef* def = graph->mutable_node(conv)->mutable_def();
  graph::SetBool(def, "resize_align_corners", aligns_corners);
  graph::SetString(def, "mode", "REFLECT");
}

}  // namespace

absl::Status FuseResizeAndConv(Graph* graph, TransformContext* context) {
  const Pattern pattern =
      Inner("Conv2D", "conv",
            {Leaf("ResizeBilinear", "resize"), Leaf("*", "filter")});
  const std::vector<bool> in_loop = NodesInLoops(*graph);
  return FuseMatches(graph, pattern, context, CheckMatch,
                     [&](const Match& match) {
                       Fuse(match, in_loop[match["conv"]], *context, graph);
                     });
}

TransformDef FuseResizeAndConvTransform() {
  return {.name = "fuse_resize_and_conv",
          .summary = "Fuses ResizeBilinear into the following convolution.",
          .parameters = {},
          .run = FuseResizeAndConv};
}

}  // namespace optfarm::transforms
