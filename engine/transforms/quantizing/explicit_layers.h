// Whole layers on quantized values (QuantizedConv2DWithBias... and their like)
// as float layers whose weights and biases are dequantized constants.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_LAYERS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_LAYERS_H_

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/quantizing/explicit_values.h"

namespace optfarm::transforms {

// Adds the float layer of node `id`, with its bias and Relu, and returns its
// result before any requantization. Weights become int8 (or keep uint8) with a
// scale for each output channel, biases int32 with scale input * weights.
// REQUIRES: the node's row describes a quantized layer; its input has been set.
// ERRORS: Unimplemented or InvalidArgument saying what of the layer has no
// explicit form, without naming the node.
absl::StatusOr<graph::Endpoint> AddExplicitLayer(graph::NodeId id,
                                                 const graph::ShapeMap& shapes,
                                                 ExplicitValues* values);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_EXPLICIT_LAYERS_H_
