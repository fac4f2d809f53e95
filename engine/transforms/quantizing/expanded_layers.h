// The opposite of fusing: 8-bit layers taken apart into float ops around their
// products, for whoever has to look at, or change, what happens inside.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPANDED_LAYERS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPANDED_LAYERS_H_

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/transforms/folding/scale_channels.h"
#include "engine/transforms/folding/shift_constants.h"
#include "engine/transforms/quantizing/idle_biases.h"

namespace optfarm::transforms {

// Lets every fused layer of `graph` that quantize_layers made add its bias in
// float:
//
//   QuantizedConv2DWithBiasAndReluAndRequantize(x, w, bias, ..., min, max)
//   becomes QuantizeV2(Relu(Add(Dequantize(QuantizedConv2DWithBias(x, w, 0,
//   ...)), bias)), min, max)
//
// The additions read the same constants and have the names that the same sums
// have in `original`, which is the graph before it was transformed. The result
// computes the same up to the rounding of the bias.
//
// `factors` are those that scale_channels multiplied layers with, by the names
// they had before. Their additions are done on the original's scale, with
// constants of their own that are called NAME/unscaled. Layers with one of the
// biases in `idle` stay as they are.
absl::Status ExpandLayers(const graph::Graph& original,
                          const ChannelFactors& factors, const IdleBiases& idle,
                          graph::Graph* graph);

// What is to be added to the constants of `graph` when these shifts were found
// for its expanded form.
ConstantShifts ShiftsOfScaled(ConstantShifts shifts,
                              const ChannelFactors& factors,
                              const graph::Graph& graph);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPANDED_LAYERS_H_
