// Signed 8-bit values as unsigned ones.

#ifndef OPTFARM_ENGINE_EXPORT_UNSIGNED_VALUES_H_
#define OPTFARM_ENGINE_EXPORT_UNSIGNED_VALUES_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace optfarm::exporting {

// Lets quantized activations and weights be uint8 instead of int8: values and
// zero points grow by 128, so that every real number stays the same. Values
// stay signed where they are an input or one of the `outputs` of the model, or
// where anything but QuantizeLinear, DequantizeLinear and ops that move or
// compare elements makes or reads them, and where QuantizeLinear rounds halves
// away from the value 0.
// ERRORS: InvalidArgument for a Const that is not well formed.
absl::Status MakeValuesUnsigned(absl::Span<const graph::Endpoint> outputs,
                                graph::Graph* graph);

// Whether nodes of the graph quantize activations to int8.
bool QuantizesToInt8(const graph::Graph& graph);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_UNSIGNED_VALUES_H_
