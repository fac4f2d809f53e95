// What a single node must be like to become part of an 8-bit layer.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_CONDITIONS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_CONDITIONS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {

// Conv2D, DepthwiseConv2dNative, MatMul.
bool IsProduct(const graph::Node& node);

// Add, AddV2.
bool IsSum(const graph::Node& node);

// Its result stays in the range of its input, and it has a form on quantized
// values: pools, shapes, concat, ResizeBilinear.
bool IsRangePreserving(const graph::Node& node);

// Gives elements of its first input, and zeros, in another place: it may move
// quantized values as it moves bytes.
bool IsDataMovement(const graph::Node& node);

// What a data movement puts beside the elements it moves. `is_zero` is false
// when that is another number, or not known.
struct Filling {
  bool is_needed = false;
  bool is_zero = false;
};
Filling FillingOf(const graph::Graph& graph, const graph::Node& movement);

// The data inputs of a range-preserving op that hold numbers, as indices.
std::vector<int> MovedInputs(const graph::Node& node);

// "" when the window that the node slides over a picture has an 8-bit kernel,
// else the reason why not.
std::string WhyFloatByWindow(const graph::Node& node);

// Whether no sum of one channel's products leaves 30 bits, whatever quantized
// values are multiplied with the weights (25).
bool SumsFit(const graph::Node& product, const FloatView& weights,
             int64_t channels);

// Whether the node limits its input to a constant range of 8 bits, which ends
// at `most` or below, so that quantized values of that range do the same.
bool IsTrainedRange(const graph::Graph& graph, const graph::Node& node,
                    float most = std::numeric_limits<float>::infinity());

// Height and width of the pictures whose mean the node takes, a Mean or an
// AvgPool; nullopt when it is another mean, or they are not known, or the sum
// of so many quantized values does not fit.
struct PictureSize {
  int64_t height = 0;
  int64_t width = 0;
};
std::optional<PictureSize> MeanOverPicture(const graph::ShapeMap& shapes,
                                           graph::NodeId id,
                                           const graph::Node& node);

// For each of `channels` channels its number, when the node is a Const that
// multiplies or is added channel by channel (the last dimension) without
// changing the shape of a tensor of `rank`; nullopt otherwise.
std::optional<std::vector<float>> ChannelNumbers(const graph::Node& node,
                                                 int64_t channels, int rank);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_LAYER_CONDITIONS_H_
