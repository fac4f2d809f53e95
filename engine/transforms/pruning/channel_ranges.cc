#include "engine/transforms/pruning/channel_ranges.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/channel_affine.h"
#include "engine/transforms/pruning/channel_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;

using Ranges = std::vector<ChannelRange>;

// factor * range + shift; a factor of zero makes zero of everything.
ChannelRange Affine(const ChannelRange& range, double factor, double shift) {
  if (factor == 0) return {shift, shift};
  const double a = factor * range.min + shift, b = factor * range.max + shift;
  return {std::min(a, b), std::max(a, b)};
}

ChannelRange WithZero(const ChannelRange& range) {
  return {std::min(range.min, 0.0), std::max(range.max, 0.0)};
}

ChannelRange At(const Ranges& ranges, size_t position) {
  if (ranges.empty()) return {};
  return ranges.size() == 1 ? ranges[0] : ranges[position % ranges.size()];
}

class RangeFinder {
 public:
  RangeFinder(const Graph& graph, const ShapeMap& shapes,
              const TransformContext& context)
      : graph_(graph), shapes_(shapes), context_(context) {}

  // What is known of the node's first output; `of` tells of its inputs.
  template <typename Inputs>
  Ranges Find(NodeId id, const Inputs& of) const {
    const graph::Node& node = graph_.node(id);
    if (const auto weights = ReadProductWeights(graph_, shapes_, id)) {
      if (HasFedParameters(graph_, context_, id, 0)) return {};
      return Product(node, *weights, of(0));
    }
    const auto affine = ReadAffineNode(graph_, id);
    if (affine.ok() && affine->has_value()) {
      const int data = (*affine)->data_input;
      if (HasFedParameters(graph_, context_, id, data)) return {};
      return Scaled(node, **affine, of(data));
    }
    int first = 0;
    if (const int count = JoinedInputs(graph_, shapes_, id, &first)) {
      return Joined(node, first, count, of);
    }
    if (node.inputs().empty()) return {};
    return Unary(id, of(0));
  }

 private:
  // Each output is a sum of products; around the image there may be zeros.
  Ranges Product(const graph::Node& node, const ProductWeights& weights,
                 Ranges inputs) const {
    const runtime::Shape& shape = weights.view.shape();
    if (inputs.empty()) inputs = {ChannelRange()};
    if (weights.inputs() % static_cast<int64_t>(inputs.size()) != 0) return {};
    if (!SeesNoPadding(node, shape)) {
      for (ChannelRange& range : inputs) range = WithZero(range);
    }
    Ranges sums(
        static_cast<size_t>(weights.outputs() *
                            (weights.is_depthwise ? weights.inputs() : 1)),
        {0, 0});
    const absl::Span<const float> values = weights.view.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const auto element = static_cast<int64_t>(i);
      const ChannelRange part =
          Affine(At(inputs, static_cast<size_t>(weights.InputOf(element))),
                 values[i], 0);
      ChannelRange& sum = sums[static_cast<size_t>(weights.OutputOf(element))];
      sum.min += part.min;
      sum.max += part.max;
    }
    return sums;
  }

  Ranges Scaled(const graph::Node& node, const AffineNode& affine,
                const Ranges& data) const {
    const ChannelAffine& a = affine.affine;
    const graph::PartialShape& shape =
        shapes_.Of(node.inputs()[static_cast<size_t>(affine.data_input)]);
    // A constant with more dimensions, or of another axis, spreads the data.
    if (a.channel_axis > 0 || !shape.has_rank() || shape.rank() < a.rank) {
      return {};
    }
    const size_t count =
        std::max({data.size(), a.scale.size(), a.shift.size()});
    Ranges scaled(count);
    for (size_t c = 0; c < count; ++c) {
      scaled[c] = Affine(At(data, c), a.scale[a.scale.size() == 1 ? 0 : c],
                         a.shift[a.shift.size() == 1 ? 0 : c]);
    }
    return scaled;
  }

  template <typename Inputs>
  Ranges Joined(const graph::Node& node, int first, int count,
                const Inputs& of) const {
    Ranges all;
    for (int i = first; i < first + count; ++i) {
      const int64_t channels =
          ChannelsOf(shapes_, node.inputs()[static_cast<size_t>(i)]);
      if (channels < 0) return {};
      const Ranges part = of(i);
      for (int64_t c = 0; c < channels; ++c) {
        all.push_back(At(part, static_cast<size_t>(c)));
      }
    }
    return all;
  }

  Ranges Unary(NodeId id, Ranges data) const {
    const graph::Node& node = graph_.node(id);
    const graph::Activation activation = graph::ActivationOf(node.op());
    if (activation != graph::Activation::kNone) {
      const double most =
          activation == graph::Activation::kRelu6 ? 6 : INFINITY;
      if (data.empty()) data = {ChannelRange()};
      for (ChannelRange& range : data) {
        range = {std::clamp(range.min, 0.0, most),
                 std::clamp(range.max, 0.0, most)};
      }
      return data;
    }
    if (graph::IsForwarding(node.op()) || PoolsEachChannel(node) ||
        AveragesEachChannel(graph_, shapes_, id)) {
      return data;
    }
    if (PadsEachChannel(graph_, shapes_, id)) {
      for (ChannelRange& range : data) {
        if (PadsWithZeros(node)) range = WithZero(range);
      }
      return data;
    }
    // After flattening, the channels repeat.
    if (graph::RowOf(node.op()).flow == graph::ValueFlow::kReshaping) {
      const int64_t last = ChannelsOf(shapes_, {id, 0});
      const auto channels = static_cast<int64_t>(data.size());
      if (channels > 0 && last > 0 && last % channels == 0) return data;
    }
    return {};
  }

  const Graph& graph_;
  const ShapeMap& shapes_;
  const TransformContext& context_;
};

}  // namespace

absl::StatusOr<ChannelRanges> ChannelRanges::Find(
    const Graph& graph, const ShapeMap& shapes,
    const TransformContext& context) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::DataflowOrder(graph));
  ChannelRanges found;
  const RangeFinder finder(graph, shapes, context);
  for (const NodeId id : order) {
    const graph::Node& node = graph.node(id);
    // What is fed can be anything.
    if (context.IsInput(node.name())) continue;
    Ranges ranges = finder.Find(id, [&](int input) -> Ranges {
      const Endpoint source = node.inputs()[static_cast<size_t>(input)];
      const auto known = found.ranges_.find(source.node);
      if (source.port != 0 || known == found.ranges_.end()) return {};
      return known->second;
    });
    if (!ranges.empty()) found.ranges_[id] = std::move(ranges);
  }
  return found;
}

ChannelRange ChannelRanges::Of(Endpoint tensor, int64_t position) const {
  const auto known = ranges_.find(tensor.node);
  if (tensor.port != 0 || known == ranges_.end()) return {};
  return At(known->second, static_cast<size_t>(position));
}

}  // namespace optfarm::transforms
