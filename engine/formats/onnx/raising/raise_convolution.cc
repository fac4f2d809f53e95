// Convolutions: NHWC pictures with HWIO filters become NCHW with OIHW. A bias
// that only this convolution gets goes into it.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/formats/onnx/raising/window_attributes.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats {
namespace {

using graph::Endpoint;
using graph::NodeId;

// A filter in ONNX's order.
struct Filter {
  ValueId value = kNoValue;
  // Output channels in all, input channels of one group.
  int64_t outputs = 0, inputs = 0;
  std::vector<int64_t> size;
};

absl::StatusOr<graph::PartialShape> FilterShape(NodeRaiser& n, int index,
                                                int spatial_rank) {
  const graph::PartialShape& shape = n.InShape(index);
  if (!shape.is_static()) {
    return absl::FailedPreconditionError(
        "the shape of its filter is not known before the graph runs");
  }
  if (shape.rank() != spatial_rank + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("its filter has shape ", shape.ToString(), ", expected ",
                     spatial_rank + 2, " axes"));
  }
  return shape;
}

// Spatial axes, inputs, outputs: outputs and inputs move to the front.
AxisOrder OutputsFirst(int spatial_rank) {
  AxisOrder order = {spatial_rank + 1, spatial_rank};
  for (int i = 0; i < spatial_rank; ++i) order.push_back(i);
  return order;
}

absl::StatusOr<Filter> ReadFilter(NodeRaiser& n, int index, int spatial_rank) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           FilterShape(n, index, spatial_rank));
  Filter filter;
  filter.inputs = shape.dim(spatial_rank);
  filter.outputs = shape.dim(spatial_rank + 1);
  for (int i = 0; i < spatial_rank; ++i) filter.size.push_back(shape.dim(i));
  filter.value = n.In(index, OutputsFirst(spatial_rank));
  return filter;
}

// The bias that is added to the node's result and nowhere else, and the node
// that adds it.
struct FoundBias {
  NodeId node = graph::kNoNode;
  ValueId value = kNoValue;
};

FoundBias FindBias(NodeRaiser& n, int64_t channels) {
  GraphRaiser& g = n.graph();
  const NodeId reader = g.OnlyReaderOf(n.output());
  if (reader == graph::kNoNode) return {};
  const graph::Node& node = g.graph().node(reader);
  if (!graph::IsSumOrBias(node.op()) || node.inputs().size() != 2) return {};
  // BiasAdd takes the bias second and knows its format.
  const int side = node.inputs()[0] == n.output() ? 1 : 0;
  if (side == 0 && !graph::IsSum(node.op())) return {};
  if (graph::DataFormatText(node.def()) != graph::DataFormatText(n.def())) {
    return {};
  }
  const Endpoint bias = node.inputs()[static_cast<size_t>(side)];
  const graph::PartialShape& shape = g.shapes().Of(bias);
  if (!g.IsConstantLike(bias) || !shape.is_static() || shape.rank() != 1 ||
      shape.dim(0) != channels) {
    return {};
  }
  return {reader, g.In(bias)};
}

// Emits the node with its bias and sets the output of whichever comes last.
void Finish(NodeRaiser& n, absl::string_view op, std::vector<ValueId> inputs,
            std::vector<OnnxAttribute> attributes, int64_t channels,
            const AxisOrder& order) {
  const FoundBias bias = FindBias(n, channels);
  if (bias.node != graph::kNoNode) inputs.push_back(bias.value);
  const ValueId result = n.Emit(op, std::move(inputs), std::move(attributes));
  n.Set(result, order);
  if (bias.node != graph::kNoNode) {
    n.graph().Set({bias.node, 0}, result, order);
  }
}

absl::StatusOr<int64_t> InputChannels(NodeRaiser& n, int index,
                                      bool channels_first) {
  const graph::PartialShape& shape = n.InShape(index);
  const int64_t channels =
      shape.has_rank() && shape.rank() > 1
          ? shape.dim(channels_first ? 1 : shape.rank() - 1)
          : -1;
  if (channels >= 0) return channels;
  return absl::FailedPreconditionError(
      "the number of its input channels is not known before the graph runs");
}

absl::Status Convolve(NodeRaiser& n, int spatial_rank) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(OnnxWindow window, ReadWindow(n, 0, spatial_rank));
  OPTFARM_ASSIGN_OR_RETURN(const Filter filter, ReadFilter(n, 1, spatial_rank));
  window.size = filter.size;
  std::vector<OnnxAttribute> attributes = WindowAttributes(window);
  // Groups show in a filter with fewer inputs than the picture has channels.
  const auto channels = InputChannels(n, 0, window.order.empty());
  if (channels.ok() && filter.inputs > 0 && *channels > filter.inputs) {
    attributes.push_back({"group", *channels / filter.inputs});
  }
  Finish(n, "Conv", {n.In(0, window.order), filter.value},
         std::move(attributes), filter.outputs, window.order);
  return absl::OkStatus();
}

absl::Status Conv2D(NodeRaiser& n) { return Convolve(n, 2); }
absl::Status Conv3D(NodeRaiser& n) { return Convolve(n, 3); }

// [H, W, C, M] becomes [C * M, 1, H, W].
absl::StatusOr<Filter> ReadDepthwiseFilter(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                           FilterShape(n, 1, 2));
  Filter filter;
  filter.inputs = shape.dim(2);
  filter.outputs = shape.dim(2) * shape.dim(3);
  filter.size = {shape.dim(0), shape.dim(1)};
  const std::vector<int64_t> dims = {filter.outputs, 1, shape.dim(0),
                                     shape.dim(1)};
  const AxisOrder order = {2, 3, 0, 1};
  GraphRaiser& g = n.graph();
  // Quantized weights with several outputs for a channel are reshaped, because
  // their scales need one axis.
  Endpoint from = g.Behind(n.input(1));
  const graph::Node& maker = g.graph().node(from.node);
  if (graph::IsReshape(maker.op()) && g.IsConstantLike(maker.inputs()[0]) &&
      g.shapes().Of(maker.inputs()[0]) ==
          graph::PartialShape(
              {shape.dim(0), shape.dim(1), 1, filter.outputs})) {
    filter.value = g.ConstantAs(maker.inputs()[0], {3, 2, 0, 1}, dims, 0);
    return filter;
  }
  filter.value = g.IsConstantLike(n.input(1))
                     ? g.ConstantAs(n.input(1), order, dims, 0)
                     : n.Reshape(n.In(1, order), dims);
  return filter;
}

absl::Status DepthwiseConv2D(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(OnnxWindow window, ReadWindow(n, 0, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Filter filter, ReadDepthwiseFilter(n));
  window.size = filter.size;
  std::vector<OnnxAttribute> attributes = WindowAttributes(window);
  attributes.push_back({"group", filter.inputs});
  Finish(n, "Conv", {n.In(0, window.order), filter.value},
         std::move(attributes), filter.outputs, window.order);
  return absl::OkStatus();
}

// --- Transposed --------------------------------------------------------------

// How much of the full result is cut off at the beginning and at the end of an
// axis; what lies beyond it is filled at the end.
struct Cut {
  int64_t begin = 0, end = 0, filled = 0;
};

absl::StatusOr<Cut> CutOf(const OnnxWindow& window, size_t axis,
                          int64_t result) {
  const int64_t stride = window.strides[axis];
  const int64_t reach = (window.size[axis] - 1) * window.dilations[axis] + 1;
  const size_t rank = window.strides.size();
  Cut cut;
  int64_t small = window.picture[axis];
  if (window.padding == graph::Padding::kExplicit) {
    cut.begin = window.explicit_pads[axis];
    cut.end = window.explicit_pads[rank + axis];
  } else if (window.padding == graph::Padding::kSame && result >= 0) {
    const int64_t steps = (result + stride - 1) / stride;
    const int64_t total =
        std::max<int64_t>((steps - 1) * stride + reach - result, 0);
    cut.begin = total / 2;
    cut.end = total - total / 2;
    small = steps;
  }
  if (result < 0 || small < 0) {
    if (window.padding == graph::Padding::kSame || stride > 1) {
      return absl::FailedPreconditionError(
          "the size of its result is not known before the graph runs");
    }
    return cut;
  }
  const int64_t full = (small - 1) * stride + reach - cut.begin - cut.end;
  cut.filled = result - full;
  if (cut.filled < 0) {
    // The pictures before were larger than what is asked for.
    cut.end -= cut.filled;
    cut.filled = 0;
  }
  return cut;
}

// Inputs: the result's shape, the filter [H, W, outputs, inputs], the picture.
absl::Status Conv2DBackpropInput(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(OnnxWindow window, ReadWindow(n, 2, 2));
  OPTFARM_ASSIGN_OR_RETURN(const Filter filter, ReadFilter(n, 1, 2));
  window.size = filter.size;
  const graph::PartialShape& shape = n.OutShape();
  const int first = window.order.empty() ? 2 : 1;
  std::vector<int64_t> pads(4), filled(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t result = shape.has_rank() && shape.rank() == 4
                               ? shape.dim(first + static_cast<int>(i))
                               : -1;
    OPTFARM_ASSIGN_OR_RETURN(const Cut cut, CutOf(window, i, result));
    pads[i] = cut.begin;
    pads[2 + i] = cut.end;
    filled[i] = cut.filled;
  }
  std::vector<OnnxAttribute> attributes = {{"kernel_shape", window.size},
                                           {"strides", window.strides},
                                           {"pads", pads},
                                           {"output_padding", filled},
                                           {"dilations", window.dilations}};
  // The filter's axes are those of the forward convolution: what it reads is
  // what this one writes.
  Finish(n, "ConvTranspose", {n.In(2, window.order), filter.value},
         std::move(attributes), filter.inputs, window.order);
  return absl::OkStatus();
}

// The entries of a list attribute along height and width, whether it has them
// for all axes or for these two.
absl::StatusOr<std::vector<int64_t>> TwoEntries(const NodeRaiser& n,
                                                absl::string_view name,
                                                int64_t absent) {
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> entries,
                           graph::GetIntsOr(n.def(), name, {absent, absent}));
  if (entries.size() == 2) return entries;
  if (entries.empty()) return std::vector<int64_t>{absent, absent};
  if (entries.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", entries.size(), " entries, expected 4"));
  }
  const size_t first = channels_first ? 2 : 1;
  return std::vector<int64_t>{entries[first], entries[first + 1]};
}

// Filter [H, W, outputs of a group, inputs]; explicit paddings.
absl::Status Conv2DTranspose(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool channels_first, HasChannelsFirst(n));
  OPTFARM_ASSIGN_OR_RETURN(const Filter filter, ReadFilter(n, 1, 2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t groups,
                           graph::GetIntOr(n.def(), "groups", 1));
  std::vector<OnnxAttribute> attributes = {{"kernel_shape", filter.size}};
  for (const char* name : {"strides", "dilations"}) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> entries,
                             TwoEntries(n, name, 1));
    attributes.push_back({name, entries});
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> filled,
                           TwoEntries(n, "output_padding", 0));
  attributes.push_back({"output_padding", filled});
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                           graph::GetIntsOr(n.def(), "explicit_paddings", {}));
  if (pads.size() == 8) {
    const size_t first = channels_first ? 4 : 2;
    attributes.push_back(
        {"pads", std::vector<int64_t>{pads[first], pads[first + 2],
                                      pads[first + 1], pads[first + 3]}});
  } else if (pads.size() == 4) {
    attributes.push_back(
        {"pads", std::vector<int64_t>{pads[0], pads[2], pads[1], pads[3]}});
  } else if (!pads.empty()) {
    return absl::InvalidArgumentError("explicit_paddings has another length");
  }
  if (groups > 1) attributes.push_back({"group", groups});
  const AxisOrder order = channels_first ? AxisOrder() : ChannelsSecond(4);
  Finish(n, "ConvTranspose", {n.In(0, order), filter.value},
         std::move(attributes), filter.inputs * std::max<int64_t>(groups, 1),
         order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Conv2D", Conv2D},
    {"Conv3D", Conv3D},
    {"DepthwiseConv2dNative", DepthwiseConv2D},
    {"Conv2DBackpropInput", Conv2DBackpropInput},
    {"Conv2DTranspose", Conv2DTranspose},
};

}  // namespace

absl::Span<const RaisingRow> ConvolutionRaisings() { return kRows; }

}  // namespace optfarm::formats
