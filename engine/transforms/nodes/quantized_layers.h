// Models that come quantized, as ONNX and TensorFlow Lite files may: values and
// weights are integers with a scale, and layers compute between
// DequantizeLinear and QuantizeLinear.

#ifndef OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_LAYERS_H_
#define OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_LAYERS_H_

#include <string>

#include "engine/graph/graph.h"

namespace optfarm::transforms {

// The layers of a graph: convolutions and matrix products.
struct QuantizedLayers {
  int layers = 0;
  // Those that read quantized values and quantized weights.
  int quantized = 0;
  // Those that read quantized weights and floats.
  int weights_only = 0;
  // UNITS: bits of the narrowest quantized weights.
  int weight_bits = 0;
  // Some weights have a scale for each channel.
  bool per_channel = false;
  // Or for each block along an axis.
  bool in_blocks = false;

  // At least half of the layers are quantized.
  bool are_most() const { return quantized > 0 && 2 * quantized >= layers; }
};

QuantizedLayers CountQuantizedLayers(const graph::Graph& graph);

// "8-bit weights, a scale for each channel, 27 of 28 layers", and with float
// values "8-bit weights, a scale for each tensor, float values, 5 of 5 layers".
std::string Describe(const QuantizedLayers& found);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_NODES_QUANTIZED_LAYERS_H_
