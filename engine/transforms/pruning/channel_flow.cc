#include "engine/transforms/pruning/channel_flow.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/channel_affine.h"
#include "engine/transforms/pruning/channel_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;

constexpr size_t kMostSteps = 1024;

// Ops of one input that work on each element and that no row tells of.
bool IsElementwise(const graph::Node& node) {
  static constexpr absl::string_view kOps[] = {
      "Elu",      "HardSwish", "LeakyRelu", "Selu", "Sigmoid",
      "Softplus", "Softsign",  "Swish",     "Tanh"};
  return node.inputs().size() == 1 && absl::c_linear_search(kOps, node.op());
}

// Whether the node only takes away or adds axes of size one that it names.
bool NamesAxesOfOne(const graph::Node& node) {
  if (node.op() == "Squeeze") {
    const auto axes = graph::GetIntsOr(node.def(), "squeeze_dims", {});
    return axes.ok() && !axes->empty();
  }
  return node.op() == "SqueezeAxes" || node.op() == "ExpandDims" ||
         node.op() == "UnsqueezeAxes";
}

// Whether the numbers of the shape that stand for a dimension of the input take
// its channels for the last dimension and for no other.
bool CopiesChannelsToChannels(const graph::PartialValue& shape,
                              int input_rank) {
  for (size_t i = 0; i < shape.elements.size(); ++i) {
    const bool is_last = i + 1 == shape.elements.size();
    const bool is_of_channels = static_cast<int>(i) + 1 == input_rank;
    if (shape.elements[i] == 0 && is_last != is_of_channels) return false;
  }
  return true;
}

class FlowFinder {
 public:
  FlowFinder(const Graph& graph, const ShapeMap& shapes,
             const TransformContext& context)
      : graph_(graph), shapes_(shapes), context_(context) {}

  ChannelFlow Find(NodeId layer) && {
    const auto weights = ReadProductWeights(graph_, shapes_, layer);
    const ChannelSpan span = {.channels = weights->outputs(),
                              .period = weights->outputs()};
    if (TakeWeights(layer, weights->output_axis, span)) Visit(layer, -1, span);
    const bool is_read = absl::c_any_of(flow_.steps, [](const FlowStep& step) {
      return step.kind == StepKind::kReader;
    });
    if (!is_read) Refuse("no layer reads its channels");
    return std::move(flow_);
  }

 private:
  bool Refuse(const std::string& obstacle) {
    if (flow_.obstacle.empty()) flow_.obstacle = obstacle;
    return false;
  }
  bool RefuseNode(NodeId id, const char* why) {
    const graph::Node& node = graph_.node(id);
    return Refuse(
        absl::StrCat("node '", node.name(), "' (", node.op(), ") ", why));
  }

  // Follows what the node gives. False: it cannot be followed.
  bool Visit(NodeId id, int parent, const ChannelSpan& span) {
    const graph::Node& node = graph_.node(id);
    if (!visited_.insert(id).second) {
      return RefuseNode(id, "reads its channels twice");
    }
    if (context_.IsInputOrOutput(node.name())) {
      return RefuseNode(id, "is an input or output of the graph");
    }
    if (HasOtherOutputsRead(node)) {
      return RefuseNode(id, "has other outputs that are read");
    }
    std::vector<graph::Use> uses(node.uses().begin(), node.uses().end());
    std::erase_if(uses, [](const graph::Use& use) { return use.is_control(); });
    // Uses have no order of their own.
    std::sort(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
      return std::pair(a.consumer, a.input) < std::pair(b.consumer, b.input);
    });
    for (const graph::Use& use : uses) {
      if (flow_.steps.size() == kMostSteps) return Refuse("it goes too far");
      FlowStep step{use.consumer, StepKind::kSame, parent, {id, 0}, span};
      if (!Take(step, use.input)) return false;
    }
    return true;
  }

  // Adds the step, and all behind it.
  bool Take(FlowStep step, int input) {
    const graph::Node& node = graph_.node(step.node);
    if (graph::IsFloatProduct(node.op())) return TakeProduct(step, input);
    const auto affine = ReadAffineNode(graph_, step.node);
    if (affine.ok() && affine->has_value()) {
      if ((*affine)->data_input == input) return TakeAffine(step, **affine);
      return RefuseNode(step.node, "reads its channels as a factor");
    }
    int first = 0;
    if (JoinedInputs(graph_, shapes_, step.node, &first) > 0) {
      return TakeJoin(step, input, first);
    }
    if (input != 0) return RefuseNode(step.node, "reads its channels");
    const graph::Activation activation = graph::ActivationOf(node.op());
    if (activation == graph::Activation::kRelu) {
      step.kind = StepKind::kRelu;
    } else if (activation == graph::Activation::kRelu6 || IsElementwise(node)) {
      step.kind = StepKind::kElementwise;
    } else if (PadsEachChannel(graph_, shapes_, step.node)) {
      if (PadsWithZeros(node)) step.kind = StepKind::kZeroPadded;
    } else if (graph::RowOf(node.op()).flow == graph::ValueFlow::kReshaping) {
      if (!TakeReshape(&step)) return false;
    } else if (!graph::IsForwarding(node.op()) && !PoolsEachChannel(node) &&
               !AveragesEachChannel(graph_, shapes_, step.node)) {
      return RefuseNode(step.node, "reads its channels");
    }
    return Continue(step, step.span);
  }

  // `span`: where the channels are in what the step gives.
  bool Continue(const FlowStep& step, const ChannelSpan& span) {
    flow_.steps.push_back(step);
    return Visit(step.node, static_cast<int>(flow_.steps.size()) - 1, span);
  }

  bool TakeWeights(NodeId id, int axis, const ChannelSpan& span) {
    const NodeId weights = graph_.node(id).inputs()[1].node;
    if (!WhyShared(graph_, context_, weights, id).empty()) {
      return RefuseNode(id, "shares its weights");
    }
    flow_.constants.push_back({id, 1, axis, span});
    return true;
  }

  bool TakeProduct(FlowStep step, int input) {
    const auto weights = ReadProductWeights(graph_, shapes_, step.node);
    if (input != 0 || !weights || weights->inputs() % step.span.period != 0) {
      return RefuseNode(step.node, "reads its channels");
    }
    const int axis = weights->input_axis;
    const bool is_depthwise =
        graph::FloatProductOf(graph_.node(step.node).op()) ==
        graph::LayerProduct::kDepthwise;
    if (!TakeWeights(step.node, axis, step.span)) return false;
    if (!is_depthwise) {
      step.kind = StepKind::kReader;
      flow_.steps.push_back(step);
      return visited_.insert(step.node).second ||
             RefuseNode(step.node, "reads its channels twice");
    }
    if (weights->inputs() != step.span.period) {
      return RefuseNode(step.node, "reads its channels");
    }
    step.kind = StepKind::kDepthwise;
    ChannelSpan out = step.span;
    out.offset *= weights->outputs();
    out.width *= weights->outputs();
    out.period *= weights->outputs();
    return Continue(step, out);
  }

  bool TakeAffine(FlowStep step, const AffineNode& affine) {
    const graph::Node& node = graph_.node(step.node);
    const graph::PartialShape& shape = shapes_.Of(step.input);
    if (!shape.has_rank() || shape.rank() < affine.affine.rank ||
        affine.affine.channel_axis > 0) {
      return RefuseNode(step.node, "reads its channels");
    }
    if (HasFedParameters(graph_, context_, step.node, affine.data_input)) {
      return RefuseNode(step.node, "reads an input of the graph");
    }
    step.kind = StepKind::kAffine;
    for (int i = 0; i < static_cast<int>(node.inputs().size()); ++i) {
      if (i == affine.data_input) continue;
      const auto view = FloatView::Of(
          graph_.node(node.inputs()[static_cast<size_t>(i)].node));
      if (!view.ok()) return RefuseNode(step.node, "has an unreadable input");
      if (view->values().size() == 1) continue;
      if (static_cast<int64_t>(view->values().size()) != step.span.period) {
        return RefuseNode(step.node, "has other channels");
      }
      flow_.constants.push_back(
          {step.node, i, view->shape().rank() - 1, step.span});
    }
    return Continue(step, step.span);
  }

  bool TakeJoin(const FlowStep& step, int input, int first) {
    const graph::Node& node = graph_.node(step.node);
    int64_t before = 0, all = 0;
    const int count = static_cast<int>(node.inputs().size()) - 1;
    for (int i = first; i < first + count; ++i) {
      const int64_t channels =
          ChannelsOf(shapes_, node.inputs()[static_cast<size_t>(i)]);
      if (channels < 0) return RefuseNode(step.node, "has unknown shapes");
      if (i < input) before += channels;
      all += channels;
    }
    if (input < first || input >= first + count ||
        ChannelsOf(shapes_, step.input) != step.span.period) {
      return RefuseNode(step.node, "reads its channels");
    }
    ChannelSpan out = step.span;
    out.offset += before;
    out.period = all;
    return Continue(step, out);
  }

  // Rows of whole pixels, or axes of size one that come and go.
  bool TakeReshape(FlowStep* step) {
    const graph::Node& node = graph_.node(step->node);
    const int64_t before = ChannelsOf(shapes_, step->input);
    const int64_t after = ChannelsOf(shapes_, {step->node, 0});
    const bool is_copy = node.op() == "ReshapeCopy";
    const bool names_axes = NamesAxesOfOne(node);
    if (before < 1 || after < 1 || before % step->span.period != 0 ||
        after % before != 0 ||
        (!names_axes && !is_copy && !graph::IsReshape(node.op()))) {
      return RefuseNode(step->node, "reads its channels");
    }
    if (names_axes) return true;
    const Endpoint shape = node.inputs()[1];
    const graph::PartialValue* value = shapes_.ValueOf(shape);
    if (!IsConst(graph_.node(shape.node)) || value == nullptr ||
        !value->is_known() || value->elements.empty()) {
      return RefuseNode(step->node, "has a computed shape");
    }
    if (is_copy &&
        !CopiesChannelsToChannels(*value, shapes_.Of(step->input).rank())) {
      return RefuseNode(step->node, "copies its channels to another axis");
    }
    // One axis may be found from the others, or be the input's.
    if (*value->elements.back() == after) {
      flow_.shapes.push_back({step->node, 1, 0, step->span});
    }
    return true;
  }

  const Graph& graph_;
  const ShapeMap& shapes_;
  const TransformContext& context_;
  ChannelFlow flow_;
  absl::flat_hash_set<NodeId> visited_;
};

}  // namespace

int64_t ChannelSpan::At(int64_t position) const {
  const int64_t within = position % period - offset;
  const bool is_here = within >= 0 && within < channels * width;
  return is_here ? within / width : -1;
}

ChannelFlow FollowChannels(const Graph& graph, const ShapeMap& shapes,
                           const TransformContext& context, NodeId layer) {
  return FlowFinder(graph, shapes, context).Find(layer);
}

}  // namespace optfarm::transforms
