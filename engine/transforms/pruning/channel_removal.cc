#include "engine/transforms/pruning/channel_removal.h"

#include <algorithm>
#include <cstring>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/channel_affine.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"
#include "engine/transforms/pruning/channel_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using runtime::Tensor;

// Gives an input of a node, a Const, another value; other readers of the Const
// keep the old one.
void ReplaceConst(NodeId node, int input, const Tensor& value,
                  const TransformContext& context, Graph* graph) {
  const NodeId old =
      graph->node(node).inputs()[static_cast<size_t>(input)].node;
  if (graph->node(old).uses().size() == 1 &&
      !context.IsInputOrOutput(graph->node(old).name())) {
    SetConstValue(graph->mutable_node(old), value);
    return;
  }
  tensorflow::NodeDef def =
      MakeConst(absl::StrCat(graph->node(old).name(), "/pruned"), value);
  def.set_device(graph->node(old).device());
  const std::vector<NodeId> controls(graph->node(old).control_inputs().begin(),
                                     graph->node(old).control_inputs().end());
  const NodeId made = graph->Add(std::move(def), {}, controls, old);
  graph->SetInput(node, input, {made, 0});
}

// The tensor without the positions of an axis at which removed channels are.
absl::StatusOr<Tensor> Without(const Tensor& value, int axis,
                               const ChannelSpan& span,
                               const std::vector<bool>& is_removed) {
  std::vector<int64_t> kept;
  for (int64_t position = 0; position < value.dim(axis); ++position) {
    const int64_t channel = span.At(position);
    if (channel >= 0 && is_removed[static_cast<size_t>(channel)]) continue;
    kept.push_back(position);
  }
  std::vector<int64_t> dims(value.shape().dims().begin(),
                            value.shape().dims().end());
  size_t outer = 1, block = runtime::ElementSize(value.dtype());
  for (int i = 0; i < value.rank(); ++i) {
    (i < axis ? outer : block) *=
        i == axis ? 1 : static_cast<size_t>(value.dim(i));
  }
  dims[static_cast<size_t>(axis)] = static_cast<int64_t>(kept.size());
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(dims));
  OPTFARM_ASSIGN_OR_RETURN(Tensor result,
                           Tensor::Allocate(value.dtype(), shape));
  const auto* from = static_cast<const char*>(value.raw());
  auto* to = static_cast<char*>(result.raw());
  const auto positions = static_cast<size_t>(value.dim(axis));
  for (size_t i = 0; i < outer; ++i) {
    for (const int64_t position : kept) {
      std::memcpy(
          to, from + (i * positions + static_cast<size_t>(position)) * block,
          block);
      to += block;
    }
  }
  return result;
}

// The shape whose last number counts channels.
template <typename T>
Tensor WithLess(const Tensor& shape, const ChannelSpan& span, int64_t removed) {
  std::vector<T> sizes(shape.flat<T>().begin(), shape.flat<T>().end());
  const int64_t times = sizes.back() / span.period;
  sizes.back() -= static_cast<T>(times * span.width * removed);
  return Tensor::FromValues<T>(shape.shape(), sizes);
}

absl::StatusOr<Tensor> ConstInput(const Graph& graph,
                                  const ChannelConstant& constant) {
  return ConstValue(
      graph.node(graph.node(constant.node)
                     .inputs()[static_cast<size_t>(constant.input)]
                     .node));
}

// The node that adds a constant to each channel of `product` and does nothing
// else, when it alone reads the product; kNoNode else. `*bias`: the input that
// holds the constant.
NodeId BiasBehind(const Graph& graph, NodeId product, size_t channels,
                  const TransformContext& context, int* bias) {
  const graph::Node& node = graph.node(product);
  if (node.uses().size() != 1 || context.IsInputOrOutput(node.name())) {
    return graph::kNoNode;
  }
  const graph::Use use = node.uses()[0];
  const graph::Node& sum = graph.node(use.consumer);
  if (use.is_control() || !graph::IsSumOrBias(sum.op())) return graph::kNoNode;
  const auto affine = ReadAffineNode(graph, use.consumer);
  if (!affine.ok() || !affine->has_value() ||
      (*affine)->data_input != use.input ||
      (*affine)->affine.channel_axis > 0 ||
      HasFedParameters(graph, context, use.consumer, use.input)) {
    return graph::kNoNode;
  }
  *bias = 1 - use.input;
  const graph::Node& constant =
      graph.node(sum.inputs()[static_cast<size_t>(*bias)].node);
  const auto view = FloatView::Of(constant);
  const bool fits = view.ok() && view->shape().rank() == 1 &&
                    view->values().size() == channels;
  return fits ? use.consumer : graph::kNoNode;
}

// A bias under the name of `product`, behind it.
void AddBias(NodeId product, const Tensor& bias, Graph* graph) {
  const std::string name = graph->node(product).name();
  graph->Rename(product, absl::StrCat(name, "/pruned"));
  tensorflow::NodeDef def = MakeConst(absl::StrCat(name, "/bias"), bias);
  def.set_device(graph->node(product).device());
  const NodeId constant = graph->Add(std::move(def), {}, {}, product);
  tensorflow::NodeDef sum = MakeNode(name, "BiasAdd", graph->node(product));
  graph::SetType(&sum, "T", tensorflow::DT_FLOAT);
  const NodeId made = graph->Add(std::move(sum), {{product, 0}, {constant, 0}});
  graph->RedirectUses({product, 0}, {made, 0}, made);
  graph->RedirectControlUses(product, made);
}

}  // namespace

absl::Status RemoveChannels(const ChannelFlow& flow,
                            const std::vector<bool>& is_removed,
                            const TransformContext& context, Graph* graph) {
  for (const ChannelConstant& constant : flow.constants) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstInput(*graph, constant));
    OPTFARM_ASSIGN_OR_RETURN(
        const Tensor less,
        Without(value, constant.axis, constant.span, is_removed));
    ReplaceConst(constant.node, constant.input, less, context, graph);
  }
  const int64_t removed = absl::c_count(is_removed, true);
  for (const ChannelConstant& shape : flow.shapes) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, ConstInput(*graph, shape));
    const Tensor less = value.dtype() == tensorflow::DT_INT64
                            ? WithLess<int64_t>(value, shape.span, removed)
                            : WithLess<int32_t>(value, shape.span, removed);
    ReplaceConst(shape.node, shape.input, less, context, graph);
  }
  return absl::OkStatus();
}

absl::Status ShiftChannels(NodeId product, const std::vector<double>& shifts,
                           const TransformContext& context, Graph* graph) {
  if (absl::c_all_of(shifts, [](double shift) { return shift == 0; })) {
    return absl::OkStatus();
  }
  std::vector<float> values(shifts.begin(), shifts.end());
  int input = 0;
  const NodeId sum =
      BiasBehind(*graph, product, values.size(), context, &input);
  const runtime::Shape shape = {static_cast<int64_t>(values.size())};
  if (sum == graph::kNoNode) {
    AddBias(product, Tensor::FromValues<float>(shape, values), graph);
    return absl::OkStatus();
  }
  const NodeId bias =
      graph->node(sum).inputs()[static_cast<size_t>(input)].node;
  OPTFARM_ASSIGN_OR_RETURN(const FloatView old,
                           FloatView::Of(graph->node(bias)));
  for (size_t c = 0; c < values.size(); ++c) {
    values[c] = static_cast<float>(shifts[c] + old.values()[c]);
  }
  ReplaceConst(sum, input, Tensor::FromValues<float>(shape, values), context,
               graph);
  return absl::OkStatus();
}

}  // namespace optfarm::transforms
