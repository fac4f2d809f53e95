// What a model file of another format (ONNX, TensorFlow Lite) says of itself
// that a GraphDef has no place for: the names of its tensors, which of them are
// inputs and outputs, and in which order. Readers write it into attributes of
// nodes, whose names begin with an underscore; a TensorFlow graph has none of
// them, and everything here then says what the graph's own names say.

#ifndef OPTFARM_ENGINE_GRAPH_MODEL_INTERFACE_H_
#define OPTFARM_ENGINE_GRAPH_MODEL_INTERFACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::graph {

// The file's names of a node's outputs: list(string), by port, "" for none.
inline constexpr absl::string_view kTensorNamesAttr = "_tensor_names";
// Position among the declared inputs or outputs: int. An output is port 0 of
// its node.
inline constexpr absl::string_view kModelInputAttr = "_model_input";
inline constexpr absl::string_view kModelOutputAttr = "_model_output";
// "onnx" or "tflite"; on declared inputs and outputs: string.
inline constexpr absl::string_view kModelFormatAttr = "_model_format";
// Names of a declared input's or output's dimensions: list(string), "" for one
// without a name.
inline constexpr absl::string_view kDimNamesAttr = "_dim_names";

// A declared input or output.
struct ModelTensor {
  // As the file spells it.
  std::string name;
  Endpoint tensor;
  std::vector<std::string> dim_names;
};

struct ModelInterface {
  // "onnx", "tflite"; empty for a TensorFlow graph, which declares nothing.
  std::string format;
  // In the file's order. Those that a transform has removed are left out.
  std::vector<ModelTensor> inputs, outputs;
};

ModelInterface ReadModelInterface(const Graph& graph);

// For readers. `position` counts from 0.
void DeclareInput(absl::string_view format, int position,
                  absl::string_view tensor_name,
                  const std::vector<std::string>& dim_names,
                  tensorflow::NodeDef* node);
void DeclareOutput(absl::string_view format, int position,
                   absl::string_view tensor_name,
                   const std::vector<std::string>& dim_names,
                   tensorflow::NodeDef* node);

// Records the file's name of an output; nothing is written where the node's
// name says it already.
void SetTensorName(absl::string_view tensor_name, int port,
                   tensorflow::NodeDef* node);

// The nearest name that a TensorFlow node may have: "a:0" -> "a", "x y;z" ->
// "x_y_z". Never empty; may be taken.
std::string NodeNameOf(absl::string_view tensor_name);

// The file's name of a tensor; the graph's own where the file has none.
std::string TensorNameInFile(const Graph& graph, Endpoint tensor);

// The tensor that a user names: as the file spells it, else as TensorFlow does
// ("node", "node:port"). Ports are not checked.
// ERRORS: InvalidArgument for a malformed name; NotFound with the nearest
// names.
absl::StatusOr<Endpoint> ResolveTensor(const Graph& graph,
                                       absl::string_view name);

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_MODEL_INTERFACE_H_
