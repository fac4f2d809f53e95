// The flags --inputs and --outputs of commands that work on a graph without
// running it.

#ifndef OPTFARM_CLIENT_CLI_FLAGS_MODEL_ENDS_H_
#define OPTFARM_CLIENT_CLI_FLAGS_MODEL_ENDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::client_cli {

struct ModelEnds {
  std::vector<graph::TensorName> inputs, outputs;
};

// What "a,b" in both flags means. In a file of a format that declares inputs
// and outputs (ONNX, TensorFlow Lite), an empty flag means those, and names may
// be the file's own; a name with a comma cannot be given. Names in a TensorFlow
// graph are not looked up.
// ERRORS: those of graph::ParseTensorNames and graph::ResolveTensor, with the
// flag in front.
absl::StatusOr<ModelEnds> ReadModelEnds(const graph::Graph& graph,
                                        const std::string& inputs,
                                        const std::string& outputs);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_FLAGS_MODEL_ENDS_H_
