// Writes a graph as a TensorFlow Lite model.
//
// The graph's canonical ops are raised to builtin operators: layers with bias
// and activation fused, constants in the operators' layouts, explicit
// DequantizeLinear / QuantizeLinear around a float op as one quantized operator
// with the scales and zero points that the graph states, bit for bit.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_WRITER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_WRITER_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/metadata.h"
#include "engine/formats/tflite/write_options.h"
#include "engine/graph/graph.h"

namespace optfarm::formats {

// The bytes of a .tflite file, with what it says for libraries on phones.
// ERRORS: FailedPrecondition with the complete list of reasons, one line each
// ("node 'x' (Op): why"), when the format cannot express the graph; those of
// graph::InferIo; ResourceExhausted beyond 2 GB.
absl::StatusOr<std::string> WriteTflite(const graph::Graph& graph,
                                        const TfliteWriteOptions& options = {},
                                        const TfliteMetadata& metadata = {});

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_WRITER_H_
