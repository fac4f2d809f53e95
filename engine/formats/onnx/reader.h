// ONNX models as graphs. Start here to understand the room:
//
//   reader        the model as a whole: versions, what is refused, the result
//   graph_reader  one graph of it: names in scope, nodes in order, subgraphs
//   lowering      what the lowering of one node sees and does
//   lowering_table, *_lowerings.cc
//                 a row for each operator and range of versions
//   graph_builder adds nodes to a graph and knows their types and shapes
//
// Operators become TensorFlow's where there is one of the same meaning, in NHWC
// with a Transpose before and after it where the file is NCHW; else ops of our
// own (engine/graph/ops).

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_READER_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// Reads a model of IR version 3 to 13. `name` stands in messages, quoted by the
// caller; external data are files in `external_data_folder` or below it, and
// refused when it is empty. The graph declares its inputs and outputs
// (engine/graph/model_interface.h).
// ERRORS: InvalidArgument for what is no valid model; Unimplemented for what we
// do not support, with all reasons: each operator with its domain, each type;
// ResourceExhausted for a model that is too large.
absl::StatusOr<tensorflow::GraphDef> ReadOnnx(
    absl::string_view bytes, absl::string_view name,
    const std::string& external_data_folder);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_READER_H_
