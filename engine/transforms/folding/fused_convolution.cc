#include "engine/transforms/folding/fused_convolution.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/graph/tensor_proto.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/convolution_weights.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {

using graph::Graph;
using graph::NodeId;
using tensorflow::DataType;

absl::Status CheckFusableConvolution(const graph::Node& conv) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type,
                           graph::GetType(conv.def(), "T"));
  OPTFARM_ASSIGN_OR_RETURN(const graph::Padding padding,
                           graph::GetPadding(conv.def()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                           graph::GetInts(conv.def(), "strides"));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<int64_t> dilations,
      graph::GetIntsOr(conv.def(), "dilations", {1, 1, 1, 1}));
  if (!graph::IsNhwc(conv.def())) {
    return absl::FailedPreconditionError(
        absl::StrCat("its data_format is ", graph::DataFormatText(conv.def()),
                     ", the fused op only knows NHWC"));
  }
  if (std::any_of(dilations.begin(), dilations.end(),
                  [](int64_t d) { return d != 1; })) {
    return absl::FailedPreconditionError(
        "it is dilated, which the fused op cannot be");
  }
  if (padding == graph::Padding::kExplicit) {
    return absl::FailedPreconditionError(
        "its padding is EXPLICIT, not SAME or VALID");
  }
  if (type != tensorflow::DT_HALF && type != tensorflow::DT_FLOAT &&
      type != tensorflow::DT_DOUBLE) {
    return absl::FailedPreconditionError(
        absl::StrCat("it computes with ", graph::DataTypeName(type),
                     ", which the fused op does not take"));
  }
  if (strides.size() != 4 || strides[0] != 1 || strides[3] != 1) {
    return absl::FailedPreconditionError(
        "its strides are not about height and width alone");
  }
  return absl::OkStatus();
}

absl::Status CheckFusableResize(const graph::Node& resize,
                                const graph::Node& conv) {
  if (resize.inputs().size() != 2) {
    return absl::InvalidArgumentError("the resizing does not have two inputs");
  }
  OPTFARM_ASSIGN_OR_RETURN(const DataType from,
                           graph::GetType(resize.def(), "T"));
  OPTFARM_ASSIGN_OR_RETURN(const DataType type,
                           graph::GetType(conv.def(), "T"));
  OPTFARM_ASSIGN_OR_RETURN(
      const bool has_half_pixel_centers,
      graph::GetBoolOr(resize.def(), "half_pixel_centers", false));
  if (has_half_pixel_centers) {
    return absl::FailedPreconditionError(
        "the resizing has half_pixel_centers=true, which the fused op does not "
        "know");
  }
  // What it gives is float, whatever it takes.
  if (from != tensorflow::DT_FLOAT || type != tensorflow::DT_FLOAT) {
    return absl::FailedPreconditionError(
        absl::StrCat("the resizing takes ", graph::DataTypeName(from),
                     " and the convolution ", graph::DataTypeName(type),
                     ", not both float"));
  }
  return absl::OkStatus();
}

absl::Status CheckFusablePad(const Graph& graph, NodeId id) {
  const graph::Node& pad = graph.node(id);
  if (pad.inputs().size() != 2) {
    return absl::InvalidArgumentError("the padding does not have two inputs");
  }
  OPTFARM_RETURN_IF_ERROR(graph::GetString(pad.def(), "mode").status());
  const graph::Node& paddings = graph.node(pad.inputs()[1].node);
  if (!IsConst(paddings)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the paddings '", paddings.name(),
                     "' are not constant; fold_constants may make them so"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(paddings.def(), "value"));
  const std::optional<std::vector<int64_t>> values =
      graph::ReadIntegers(*proto, 8);
  if (proto->dtype() != tensorflow::DT_INT32 || !values.has_value() ||
      values->size() != 8) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the paddings '", paddings.name(),
        "' are not four pairs of int32, which the fused op takes"));
  }
  for (int i : {0, 1, 6, 7}) {
    if ((*values)[i] != 0) {
      return absl::FailedPreconditionError(
          "the batch or the channels are padded too");
    }
  }
  return absl::OkStatus();
}

void BecomeFused(NodeId conv, absl::string_view op,
                 absl::Span<const graph::Endpoint> inputs,
                 const std::vector<NodeId>& fused,
                 const TransformContext& context, Graph* graph) {
  tensorflow::NodeDef* def = graph->mutable_node(conv)->mutable_def();
  tensorflow::NodeDef old = *def;
  def->set_op(std::string(op));
  def->clear_attr();
  for (const char* attribute : {"T", "padding", "strides"}) {
    graph::CopyAttr(old, attribute, def);
  }
  for (NodeId id : fused) InheritControlInputs(conv, id, graph);
  graph->SetInputs(conv, inputs);
  RemoveUnused(fused, context, graph);
}

absl::Status FuseMatches(
    Graph* graph, const Pattern& pattern, TransformContext* context,
    absl::FunctionRef<absl::Status(const Graph&, const Match&,
                                   const TransformContext&)>
        check,
    absl::FunctionRef<void(const Match&)> fuse) {
  return RewriteMatches(graph, pattern, [&](const Match& match) {
    const absl::Status fits = check(*graph, match, *context);
    if (fits.ok()) {
      fuse(match);
      context->CountChange();
    } else {
      context->Skip(graph->node(match["conv"]).name(), fits.message());
    }
    return absl::OkStatus();
  });
}

}  // namespace optfarm::transforms
