// prune_channels: takes channels out of convolutions and matrix products that
// the layers behind them do not need. A channel that is one number in every run
// (its filter is zero, or its activation always cuts it off) becomes part of
// the next layers' biases. Of channels that are a multiple of another one, only
// the other stays, and the next layers' weights for it take up the rest:
//
//   x_j = a x_i + d    =>    w_i x_i + w_j x_j = (w_i + a w_j) x_i + d w_j
//
// The model's data are not looked at: what is a constant or a multiple follows
// from weights and biases alone.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/machinery/builtin_transforms.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/pruning/channel_flow.h"
#include "engine/transforms/pruning/channel_nodes.h"
#include "engine/transforms/pruning/channel_ranges.h"
#include "engine/transforms/pruning/channel_removal.h"
#include "engine/transforms/pruning/proportional_channels.h"

namespace optfarm::transforms {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::ShapeMap;

// Half of what a float's neighbours differ by, as a share.
constexpr double kHalfStep = 6e-8;
constexpr int64_t kMostMultiple = 1024;

// What a layer that sums over channels reads at a position of its input.
struct Position {
  // -1: another layer's.
  int64_t channel = -1;
  // The number that stands for it when it is removed as a constant.
  double value = 0;
  bool is_needed = false;
};

// What may go, and how many have to stay.
struct Options {
  double tolerance = 0;
  int64_t multiple = 1;
};

// The channels that a layer loses, at least one less than it has.
struct Plan {
  std::vector<bool> is_constant;
  std::vector<ProportionalChannel> multiples;

  std::vector<bool> Removed() const {
    std::vector<bool> removed = is_constant;
    for (const ProportionalChannel& multiple : multiples) {
      removed[static_cast<size_t>(multiple.channel)] = true;
    }
    return removed;
  }

  // Takes back what leaves a number of channels that `multiple` does not
  // divide.
  void RoundUp(int64_t multiple) {
    const int64_t removed = absl::c_count(Removed(), true);
    const int64_t kept = static_cast<int64_t>(is_constant.size()) - removed;
    int64_t too_many =
        std::min(removed, (multiple - kept % multiple) % multiple);
    for (; too_many > 0 && !multiples.empty(); --too_many) {
      multiples.pop_back();
    }
    for (size_t c = is_constant.size(); c > 0 && too_many > 0; --c) {
      if (!is_constant[c - 1]) continue;
      is_constant[c - 1] = false;
      --too_many;
    }
  }
};

std::vector<Position> PositionsOf(const Graph& graph, const ShapeMap& shapes,
                                  const ChannelRanges& ranges,
                                  const FlowStep& reader, double tolerance) {
  const auto weights = ReadProductWeights(graph, shapes, reader.node);
  std::vector<Position> positions(static_cast<size_t>(weights->inputs()));
  double widest = 0;
  for (size_t p = 0; p < positions.size(); ++p) {
    const auto place = static_cast<int64_t>(p);
    positions[p].channel = reader.span.At(place);
    const double width = ranges.Of(reader.input, place).width();
    if (positions[p].channel >= 0 && std::isfinite(width)) {
      widest = std::max(widest, width);
    }
  }
  std::vector<bool> has_weights(positions.size());
  const absl::Span<const float> values = weights->view.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t place = weights->InputOf(static_cast<int64_t>(i));
    if (values[i] != 0) has_weights[static_cast<size_t>(place)] = true;
  }
  const bool is_foldable =
      SeesNoPadding(graph.node(reader.node), weights->view.shape());
  for (size_t p = 0; p < positions.size(); ++p) {
    if (positions[p].channel < 0 || !has_weights[p]) continue;
    const ChannelRange range = ranges.Of(reader.input, static_cast<int64_t>(p));
    const double size = std::max(std::abs(range.min), std::abs(range.max));
    const bool is_one =
        std::isfinite(size) &&
        range.width() <= std::max(kHalfStep * size, tolerance * widest);
    // Around the image there are zeros, whatever the constant is.
    const bool has_zero = range.min <= 0 && range.max >= 0;
    positions[p].is_needed = !is_one || (!is_foldable && !has_zero);
    if (!positions[p].is_needed && is_foldable) {
      positions[p].value = (range.min + range.max) / 2;
    }
  }
  return positions;
}

class LayerPruner {
 public:
  LayerPruner(NodeId layer, const ShapeMap& shapes, const ChannelFlow& flow,
              const ChannelRanges& ranges, const Options& options,
              const TransformContext& context, Graph* graph)
      : shapes_(shapes), flow_(flow), context_(context), graph_(graph) {
    for (const FlowStep& step : flow.steps) {
      positions_.push_back(
          step.kind == StepKind::kReader
              ? PositionsOf(*graph, shapes, ranges, step, options.tolerance)
              : std::vector<Position>());
    }
    plan_.is_constant = Constants();
    plan_.multiples = FindProportional(*graph, shapes, layer, flow,
                                       plan_.is_constant, options.tolerance);
    plan_.RoundUp(options.multiple);
  }

  bool IsUseful() const { return absl::c_linear_search(plan_.Removed(), true); }

  absl::Status Apply() {
    std::vector<std::vector<double>> shifts(flow_.steps.size());
    for (size_t i = 0; i < flow_.steps.size(); ++i) {
      if (flow_.steps[i].kind == StepKind::kReader) shifts[i] = Repair(i);
    }
    OPTFARM_RETURN_IF_ERROR(
        RemoveChannels(flow_, plan_.Removed(), context_, graph_));
    for (size_t i = 0; i < flow_.steps.size(); ++i) {
      if (shifts[i].empty()) continue;
      OPTFARM_RETURN_IF_ERROR(
          ShiftChannels(flow_.steps[i].node, shifts[i], context_, graph_));
    }
    return absl::OkStatus();
  }

 private:
  // Channels that no reader needs. One stays in any case: there are no tensors
  // without channels.
  std::vector<bool> Constants() const {
    const auto channels =
        static_cast<size_t>(flow_.constants.front().span.channels);
    std::vector<bool> is_constant(channels, true);
    for (const std::vector<Position>& positions : positions_) {
      for (const Position& position : positions) {
        if (position.is_needed) {
          is_constant[static_cast<size_t>(position.channel)] = false;
        }
      }
    }
    if (!absl::c_linear_search(is_constant, false)) is_constant[0] = false;
    return is_constant;
  }

  // Adds the weights of removed multiples to those of the others, in the reader
  // of step `i`. Returns what has to be added to its results.
  std::vector<double> Repair(size_t i) {
    const FlowStep& reader = flow_.steps[i];
    const auto weights = ReadProductWeights(*graph_, shapes_, reader.node);
    std::vector<const ProportionalChannel*> multiples(plan_.is_constant.size());
    for (const ProportionalChannel& multiple : plan_.multiples) {
      multiples[static_cast<size_t>(multiple.channel)] = &multiple;
    }
    std::vector<double> shifts(static_cast<size_t>(weights->outputs()));
    std::vector<float> values(weights->view.values().begin(),
                              weights->view.values().end());
    for (size_t at = 0; at < values.size(); ++at) {
      const auto element = static_cast<int64_t>(at);
      const Position& position =
          positions_[i][static_cast<size_t>(weights->InputOf(element))];
      if (position.channel < 0) continue;
      const auto channel = static_cast<size_t>(position.channel);
      double& shift = shifts[static_cast<size_t>(weights->OutputOf(element))];
      if (plan_.is_constant[channel]) shift += position.value * values[at];
      if (multiples[channel] == nullptr) continue;
      const auto& [own, other, steps] = *multiples[channel];
      values[at + static_cast<size_t>((other - own) * weights->input_stride)] +=
          static_cast<float>(steps[i].factor * values[at]);
      shift += steps[i].shift * values[at];
    }
    absl::c_copy(
        values, MutableFloats(graph_->mutable_node(weights->constant)).begin());
    return shifts;
  }

  const ShapeMap& shapes_;
  const ChannelFlow& flow_;
  const TransformContext& context_;
  Graph* const graph_;
  // By step; empty for those that read no sums.
  std::vector<std::vector<Position>> positions_;
  Plan plan_;
};

bool IsPrunable(const Graph& graph, const ShapeMap& shapes, NodeId id) {
  if (graph::FloatProductOf(graph.node(id).op()) ==
      graph::LayerProduct::kDepthwise) {
    return false;
  }
  const auto weights = ReadProductWeights(graph, shapes, id);
  return weights && weights->outputs() > 1;
}

// Whether a channel was removed. Says why a layer keeps all, on the first pass.
absl::StatusOr<bool> PruneAll(const Options& options, bool is_first,
                              TransformContext* context, Graph* graph) {
  bool has_changed = false;
  OPTFARM_ASSIGN_OR_RETURN(ShapeMap shapes,
                           InferShapesWithInputs(*graph, *context));
  OPTFARM_ASSIGN_OR_RETURN(ChannelRanges ranges,
                           ChannelRanges::Find(*graph, shapes, *context));
  for (const NodeId id : graph->Ids()) {
    if (!IsPrunable(*graph, shapes, id)) continue;
    const ChannelFlow flow = FollowChannels(*graph, shapes, *context, id);
    if (!flow.obstacle.empty()) {
      if (is_first) context->Skip(graph->node(id).name(), flow.obstacle);
      continue;
    }
    LayerPruner pruner(id, shapes, flow, ranges, options, *context, graph);
    if (!pruner.IsUseful()) continue;
    OPTFARM_RETURN_IF_ERROR(pruner.Apply());
    context->CountChange();
    has_changed = true;
    OPTFARM_ASSIGN_OR_RETURN(shapes, InferShapesWithInputs(*graph, *context));
    OPTFARM_ASSIGN_OR_RETURN(ranges,
                             ChannelRanges::Find(*graph, shapes, *context));
  }
  return has_changed;
}

absl::Status PruneChannels(Graph* graph, TransformContext* context) {
  Options options = {.tolerance = context->arguments().Float("tolerance"),
                     .multiple = context->arguments().Int("multiple")};
  if (!(options.tolerance >= 0 && options.tolerance < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'tolerance' is ", options.tolerance,
                     ", not at least 0 and below 1"));
  }
  if (options.multiple < 1 || options.multiple > kMostMultiple) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter 'multiple' is ", options.multiple,
                     ", not within 1 and ", kMostMultiple));
  }
  OPTFARM_ASSIGN_OR_RETURN(bool has_changed,
                           PruneAll(options, true, context, graph));
  // A layer that lost channels may need fewer of the one before it. What is
  // nearly alike is not merged twice: errors would add up.
  options.tolerance = 0;
  while (has_changed) {
    OPTFARM_ASSIGN_OR_RETURN(has_changed,
                             PruneAll(options, false, context, graph));
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef PruneChannelsTransform() {
  return {
      .name = "prune_channels",
      .summary =
          "Removes channels of convolutions and matrix products that are "
          "constant, or a multiple of another channel, and repairs the "
          "layers that read them.",
      .parameters = {{.name = "tolerance",
                      .type = ParameterType::kFloat,
                      .help = "How far a removed channel may be from a "
                              "constant or a multiple, as a share of the "
                              "layer's widest channel or of its own weights; "
                              "0: only what changes no answer.",
                      .default_value = "0"},
                     {.name = "multiple",
                      .type = ParameterType::kInt,
                      .help = "Layers keep a number of channels that this "
                              "divides, or all. Kernels work on 8 or more at "
                              "a time: 31 channels may take longer than 32.",
                      .default_value = "1"}},
      .run = PruneChannels};
}

}  // namespace optfarm::transforms
