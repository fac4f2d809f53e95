// TensorFlow Lite models as graphs. Start here; docs/tflite.md says what is
// read and how operators become nodes.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_READER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_READER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// On a declared input or output, list(string): a signature's key and the name
// that the signature gives the tensor, for each signature of the model.
inline constexpr absl::string_view kSignatureAttr = "_signature";
// On the first declared output, beside the notes of
// engine/graph/model_notes.h: the model's description, string.
inline constexpr absl::string_view kDescriptionAttr = "_model_description";

// Whether the bytes say that they are a TensorFlow Lite model.
bool IsTflite(absl::string_view bytes);

// The model's first subgraph as a graph that declares its inputs and outputs
// (engine/graph/model_interface.h). Quantized tensors stay quantized: an
// operator's real arithmetic stands between DequantizeLinear and
// QuantizeLinear with the file's scales and zero points. `name` stands in
// messages, quoted by the caller if it is a file.
// ERRORS: InvalidArgument for a file that is damaged or contradicts itself;
// Unimplemented naming every operator that is not supported, or what of one is
// not; ResourceExhausted for constants that claim far more memory than the file
// has bytes.
absl::StatusOr<tensorflow::GraphDef> ReadTflite(absl::string_view bytes,
                                                absl::string_view name);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_READER_H_
