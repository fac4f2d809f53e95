// The 8-bit layers whose weights can be rounded anew, with what their weights
// were before they were quantized values. adaptive_rounding.h is the entry.

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ROUNDED_LAYERS_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ROUNDED_LAYERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/optimize/rounding/input_moments.h"

namespace optfarm::optimize {

struct RoundedLayer {
  graph::NodeId id = graph::kNoNode;
  // The constants that hold its quantized values and its bias.
  std::string values;
  std::string bias;
  // Where its input comes from: quantized values, and the ends of their range.
  graph::TensorName input, min, max;
  WindowShape window;
  // Results of each column: all channels, or those of one input channel of a
  // depthwise layer.
  size_t outputs = 0;
  bool transposed = false;
  // In the order of the constant: its quantized values, and what they were
  // rounded from.
  std::vector<int8_t> nearest;
  std::vector<float> targets;
  // By channel: what one step of the quantized values stands for.
  std::vector<double> steps;

  // Columns that one form has to hold together at most: more are not
  // multiplied with each other.
  size_t columns_together() const;
  // Place in the constant of the weight from `column` to `output`.
  size_t PlaceOf(size_t column, size_t output) const;
  // The channel that an output of a column is.
  size_t ChannelOf(size_t column, size_t output) const;
};

// The layers of `quantized`, in the order of the graph, that quantize_layers
// made from layers of `floats`, that own their constants, and whose quantized
// values are the nearest ones to the float weights.
std::vector<RoundedLayer> FindRoundedLayers(const graph::Graph& floats,
                                            const graph::Graph& quantized);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ROUNDED_LAYERS_H_
