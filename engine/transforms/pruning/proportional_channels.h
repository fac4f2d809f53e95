// Channels that are, or nearly are, another channel of their layer times a
// factor, at all who read them: such a channel's weights in those layers can be
// added to the other's.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_PROPORTIONAL_CHANNELS_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_PROPORTIONAL_CHANNELS_H_

#include <cstdint>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/pruning/channel_flow.h"

namespace optfarm::transforms {

// What a reader sees: channel = factor * other + shift.
struct Proportion {
  double factor = 1;
  double shift = 0;
};

struct ProportionalChannel {
  int64_t channel = 0;
  // It stays.
  int64_t other = 0;
  // One for each step of the flow.
  std::vector<Proportion> steps;
};

// Pairs among the channels of `layer` that `is_removed` does not name. A pair
// may differ by `tolerance` of the channel's weights, biases behind it
// included, in Euclidean norm; 0 allows for rounding alone. The factor is the
// one with the least squared difference.
// REQUIRES: `flow` is the layer's, without an obstacle; tolerance within 0
// and 1.
std::vector<ProportionalChannel> FindProportional(
    const graph::Graph& graph, const graph::ShapeMap& shapes,
    graph::NodeId layer, const ChannelFlow& flow,
    const std::vector<bool>& is_removed, double tolerance);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_PROPORTIONAL_CHANNELS_H_
