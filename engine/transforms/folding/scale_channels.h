// Larger quantized values for channels that use few of a layer's 256:
// cross-layer equalization (Nagel et al. 2019) in its exact form, where a
// depthwise layer reads the quantized values. Formula 28 of
// docs/quantization.md.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_CHANNELS_H_
#define OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_CHANNELS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/graph/graph.h"

namespace optfarm::transforms {

// A factor for each output channel, by the layer's name.
using ChannelFactors = std::map<std::string, std::vector<float>>;

// A larger factor could make a bias leave its 32 bits (26).
inline constexpr float kMostChannelFactor = 256;

// What is added to the name of a layer whose channels are scaled: what it
// computes is not the original's value any more.
inline constexpr char kScaledSuffix[] = "/scaled";

// The fused layers of which only depthwise layers read the quantized values,
// directly or through pools and joins along the channels, in the order of the
// graph.
std::vector<std::string> ScalableLayers(const graph::Graph& graph);

// Multiplies the channels of layers and divides those of the depthwise layers
// behind them, by changing nothing but ranges of weights and biases.
// ERRORS: InvalidArgument for a layer that is not scalable, another number of
// factors than it has channels, or one that is not within 1 and the most.
absl::Status ScaleChannels(const ChannelFactors& factors, graph::Graph* graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FOLDING_SCALE_CHANNELS_H_
