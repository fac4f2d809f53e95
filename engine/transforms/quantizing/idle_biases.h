// Biases of 8-bit layers that need no numbers. What is added to each channel of
// a layer's result goes, by the weights behind it, into the next layer's bias,
// if nothing but a product over single pixels reads it; a batch norm that
// normalizes by the batch's own mean takes it off again.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_IDLE_BIASES_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_IDLE_BIASES_H_

#include <set>
#include <string>

#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::transforms {

// Names of constants.
using IdleBiases = std::set<std::string>;

// The biases of layers made by quantize_layers that are zero and may stay so,
// whatever the means of their channels; `outputs` are the graph's.
IdleBiases FindIdleBiases(const graph::Graph& graph,
                          absl::Span<const graph::TensorName> outputs);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_IDLE_BIASES_H_
