// The data flow of a layer's channels through the graph: from the convolution
// or matrix product that computes them to those that sum over them. When every
// node between works on each channel by itself, a channel can be taken out: the
// constants of the flow lose what belongs to it.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_FLOW_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_FLOW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/transform.h"

namespace optfarm::transforms {

// Where a layer's channels are on an axis: channel c has `width` positions from
// offset + c * width on, and the same again after every `period` positions.
struct ChannelSpan {
  int64_t offset = 0;
  int64_t width = 1;
  int64_t channels = 0;
  int64_t period = 0;

  // The channel at a position, -1 where another layer's is.
  int64_t At(int64_t position) const;
};

// What a step of the flow does to a channel.
enum class StepKind : uint8_t {
  kSame,         // Passes its values on, or their largest or their mean.
  kAffine,       // Multiplies by a constant and adds one.
  kRelu,         // Keeps proportions, but nothing that was added.
  kElementwise,  // Only equal channels stay equal.
  kZeroPadded,   // Puts zeros around the image.
  kDepthwise,    // Sums with weights of the channel's own.
  kReader,       // Sums over channels: the end of the flow.
};

struct FlowStep {
  graph::NodeId node = graph::kNoNode;
  StepKind kind = StepKind::kSame;
  // The step before, -1 after the layer itself; steps stand after it.
  int parent = -1;
  // What it reads, and where the channels are in it.
  graph::Endpoint input;
  ChannelSpan span;
};

// A constant that has elements for each channel.
struct ChannelConstant {
  graph::NodeId node = graph::kNoNode;
  int input = 0;
  int axis = 0;
  ChannelSpan span;
};

struct ChannelFlow {
  std::vector<FlowStep> steps;
  // The layer's own weights first.
  std::vector<ChannelConstant> constants;
  // Reshapes whose shape counts the channels, as the last of its numbers.
  std::vector<ChannelConstant> shapes;
  // Why nothing can be taken out; "" when it can.
  std::string obstacle;
};

// REQUIRES: `layer` is a Conv2D or MatMul with ReadProductWeights.
ChannelFlow FollowChannels(const graph::Graph& graph,
                           const graph::ShapeMap& shapes,
                           const TransformContext& context,
                           graph::NodeId layer);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_CHANNEL_FLOW_H_
