// fold_old_batch_norms: turns a convolution followed by a batch norm op into a
// convolution with other weights followed by a BiasAdd. The batch norm may also
// follow a BatchToSpaceND or a concatenation of two convolutions.
//
// Nothing is folded that something else sees: TensorFlow loops for ever, or
// scales twice, where a parameter or a weight is shared.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/batch_norm.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

Pattern Convolution(absl::string_view conv, absl::string_view weights) {
  return Inner(kConvolutionOps, conv, {Leaf("*", "x"), Leaf("Const", weights)});
}

Pattern BatchNormOf(Pattern input) {
  return Inner(kBatchNormOps, "norm",
               {std::move(input), Leaf("*", "p1"), Leaf("*", "p2"),
                Leaf("*", "p3"), Leaf("*", "p4")});
}

// A convolution whose weights are to be scaled, and what then is to be added.
struct Scaling {
  NodeId conv = graph::kNoNode;
  NodeId weights = graph::kNoNode;
  std::vector<float> scale;
  std::vector<float> offset;
};

// ERRORS: why the convolution cannot be changed. `consumer` is the node between
// it and the batch norm, or the batch norm.
absl::StatusOr<Scaling> PlanScaling(const Graph& graph,
                                    const TransformContext& context,
                                    NodeId conv, NodeId weights,
                                    NodeId consumer,
                                    absl::Span<const float> scale,
                                    absl::Span<const float> offset) {
  for (const auto& [node, user] :
       {std::pair(conv, consumer), std::pair(weights, conv)}) {
    const std::string shared = WhyShared(graph, context, node, user);
    if (!shared.empty()) return absl::FailedPreconditionError(shared);
  }
  OPTFARM_RETURN_IF_ERROR(
      CheckScale(graph.node(conv), graph.node(weights), scale.size()));
  return Scaling{.conv = conv,
                 .weights = weights,
                 .scale = {scale.begin(), scale.end()},
                 .offset = {offset.begin(), offset.end()}};
}

// The batch norm normalizes the dimension that the convolution calls channels.
absl::Status CheckFormats(const Graph& graph, NodeId norm, NodeId conv) {
  const bool is_fused =
      !graph::HasRole(graph.node(norm).op(), graph::OpRole::kGlobalBatchNorm);
  const std::string of_norm =
      is_fused ? graph::DataFormatText(graph.node(norm).def()) : "NHWC";
  const std::string of_conv = graph::DataFormatText(graph.node(conv).def());
  if (of_norm == of_conv) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "its data_format is ", of_norm, ", its convolution's ", of_conv));
}

// Scales the convolution and adds a BiasAdd of it with this name.
NodeId ApplyScaling(const Scaling& scaling, absl::string_view name,
                    NodeId before, Graph* graph) {
  ScaleWeights(graph->node(scaling.conv), scaling.scale,
               graph->mutable_node(scaling.weights));
  const graph::Node& conv = graph->node(scaling.conv);
  tensorflow::NodeDef offset = MakeConst(
      absl::StrCat(conv.name(), "_bn_offset"),
      Tensor::FromValues<float>({static_cast<int64_t>(scaling.offset.size())},
                                scaling.offset));
  const NodeId offset_id = graph->Add(std::move(offset), {}, {}, before);
  tensorflow::NodeDef bias;
  bias.set_name(std::string(name));
  bias.set_op("BiasAdd");
  bias.set_device(conv.device());
  graph::SetType(&bias, "T", tensorflow::DT_FLOAT);
  graph::CopyAttr(conv.def(), "data_format", &bias);
  return graph->Add(std::move(bias), {{scaling.conv, 0}, {offset_id, 0}}, {},
                    before);
}

// Lets `result` take the place and the name of the batch norm, and removes its
// parameters where nothing else needs them.
void ReplaceNorm(NodeId norm, NodeId result, const TransformContext& context,
                 Graph* graph) {
  const std::string name = graph->node(norm).name();
  std::vector<NodeId> parameters;
  for (const Endpoint& e : graph->node(norm).inputs().subspan(1)) {
    parameters.push_back(e.node);
  }
  for (NodeId control : graph->node(norm).control_inputs()) {
    graph->AddControlInput(result, control);
  }
  graph->RedirectUses({norm, 0}, {result, 0});
  graph->RedirectControlUses(norm, result);
  graph->Remove(norm);
  graph->Rename(result, name);
  for (NodeId parameter : parameters) {
    if (graph->Has(parameter) && graph->node(parameter).uses().empty() &&
        !context.IsInputOrOutput(graph->node(parameter).name())) {
      graph->Remove(parameter);
    }
  }
}

absl::Status FoldDirect(const Match& match, const TransformContext& context,
                        Graph* graph) {
  const NodeId norm = match["norm"];
  const NodeId conv = match["conv"];
  OPTFARM_ASSIGN_OR_RETURN(const BatchNorm values, ReadBatchNorm(*graph, norm));
  OPTFARM_RETURN_IF_ERROR(CheckFormats(*graph, norm, conv));
  OPTFARM_ASSIGN_OR_RETURN(const Scaling scaling,
                           PlanScaling(*graph, context, conv, match["weights"],
                                       norm, values.scale, values.offset));
  // The name is the batch norm's in the end; until then it is taken.
  const NodeId bias =
      ApplyScaling(scaling, graph->node(norm).name(), norm, graph);
  ReplaceNorm(norm, bias, context, graph);
  return absl::OkStatus();
}

absl::Status FoldThroughBatchToSpace(const Match& match,
                                     const TransformContext& context,
                                     Graph* graph) {
  const NodeId norm = match["norm"];
  const NodeId conv = match["conv"];
  const NodeId space = match["space"];
  OPTFARM_ASSIGN_OR_RETURN(const BatchNorm values, ReadBatchNorm(*graph, norm));
  OPTFARM_RETURN_IF_ERROR(CheckFormats(*graph, norm, conv));
  if (const std::string shared = WhyShared(*graph, context, space, norm);
      !shared.empty()) {
    return absl::FailedPreconditionError(shared);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Scaling scaling,
                           PlanScaling(*graph, context, conv, match["weights"],
                                       space, values.scale, values.offset));
  const NodeId bias = ApplyScaling(
      scaling, absl::StrCat(graph->node(conv).name(), "/biasadd"), norm, graph);
  graph->SetInput(space, 0, {bias, 0});
  ReplaceNorm(norm, space, context, graph);
  return absl::OkStatus();
}

// Channels of the first convolution when the two are joined along the
// channels; 0 when along another axis, where both have all channels.
absl::StatusOr<size_t> SplitPoint(const Graph& graph, const Match& match) {
  OPTFARM_ASSIGN_OR_RETURN(const Tensor axis,
                           ConstValue(graph.node(match["axis"])));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, axis.AsInt64s());
  if (axes.size() != 1 || axes[0] < -4 || axes[0] > 3) {
    return absl::InvalidArgumentError("the axis of the concatenation is bad");
  }
  const int channel_axis =
      graph::IsNhwc(graph.node(match["conv0"]).def()) ? 3 : 1;
  if ((axes[0] + 4) % 4 != channel_axis) return 0;
  OPTFARM_ASSIGN_OR_RETURN(const FloatView weights,
                           FloatView::Of(graph.node(match["weights0"])));
  OPTFARM_ASSIGN_OR_RETURN(
      const int64_t channels,
      OutputChannels(graph.node(match["conv0"]), weights.shape()));
  return static_cast<size_t>(channels);
}

absl::Status FoldThroughConcat(const Match& match,
                               const TransformContext& context, Graph* graph) {
  const NodeId norm = match["norm"];
  const NodeId concat = match["concat"];
  OPTFARM_ASSIGN_OR_RETURN(const BatchNorm values, ReadBatchNorm(*graph, norm));
  OPTFARM_ASSIGN_OR_RETURN(const size_t split, SplitPoint(*graph, match));
  if (split > values.scale.size()) {
    return absl::InvalidArgumentError(
        "the batch norm has fewer channels than its first convolution");
  }
  if (const std::string shared = WhyShared(*graph, context, concat, norm);
      !shared.empty()) {
    return absl::FailedPreconditionError(shared);
  }
  // One node that is joined with itself would be scaled twice.
  if (match["conv0"] == match["conv1"]) {
    return absl::FailedPreconditionError("both parts are the same convolution");
  }
  const absl::Span<const float> scale = values.scale;
  const absl::Span<const float> offset = values.offset;
  std::vector<Scaling> scalings;
  for (int i = 0; i < 2; ++i) {
    const size_t begin = i == 0 ? 0 : split;
    const size_t length = i == 0 && split > 0 ? split : scale.size() - begin;
    const NodeId conv = match[absl::StrCat("conv", i)];
    OPTFARM_RETURN_IF_ERROR(CheckFormats(*graph, norm, conv));
    OPTFARM_ASSIGN_OR_RETURN(
        Scaling scaling,
        PlanScaling(*graph, context, conv, match[absl::StrCat("weights", i)],
                    concat, scale.subspan(begin, length),
                    offset.subspan(begin, length)));
    scalings.push_back(std::move(scaling));
  }
  const std::string name = graph->node(concat).name();
  for (int i = 0; i < 2; ++i) {
    const NodeId bias =
        ApplyScaling(scalings[i], absl::StrCat(name, "_bn_in", i), norm, graph);
    graph->SetInput(concat, i, {bias, 0});
  }
  ReplaceNorm(norm, concat, context, graph);
  return absl::OkStatus();
}

absl::Status FoldOldBatchNorms(Graph* graph, TransformContext* context) {
  using Fold = absl::Status (*)(const Match&, const TransformContext&, Graph*);
  const std::pair<Pattern, Fold> stages[] = {
      {BatchNormOf(Convolution("conv", "weights")), FoldDirect},
      {BatchNormOf(Inner("BatchToSpaceND", "space",
                         {Convolution("conv", "weights"),
                          Leaf("Const", "block"), Leaf("Const", "crops")})),
       FoldThroughBatchToSpace},
      {BatchNormOf(
           Inner("ConcatV2", "concat",
                 {Convolution("conv0", "weights0"),
                  Convolution("conv1", "weights1"), Leaf("Const", "axis")})),
       FoldThroughConcat}};
  for (const auto& [pattern, fold] : stages) {
    OPTFARM_RETURN_IF_ERROR(
        RewriteMatches(graph, pattern, [&, run = fold](const Match& match) {
          const std::string name = graph->node(match["norm"]).name();
          const absl::Status folded = run(match, *context, graph);
          if (folded.ok()) {
            context->CountChange();
          } else {
            context->Skip(name, folded.message());
          }
          return absl::OkStatus();
        }));
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef FoldOldBatchNormsTransform() {
  return {.name = "fold_old_batch_norms",
          .summary =
              "Folds a batch norm after a convolution into its weights and a "
              "BiasAdd.",
          .parameters = {},
          .run = FoldOldBatchNorms};
}

}  // namespace optfarm::transforms
