// What a model is fed and what it is asked for: from what the user said, from
// the graph where the user said nothing, and a question to the user where the
// graph does not tell.

#ifndef OPTFARM_ENGINE_GRAPH_INFER_IO_H_
#define OPTFARM_ENGINE_GRAPH_INFER_IO_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "tensorflow/core/framework/types.pb.h"

namespace optfarm::graph {

// A tensor the user wants to feed. What is left out is inferred.
struct InputRequest {
  // "node" or "node:port", or the model file's own name of a tensor
  // (model_interface.h); any tensor of the graph.
  std::string name;
  std::optional<tensorflow::DataType> dtype;
  // An unknown first dimension becomes the batch; others must be known.
  std::optional<PartialShape> shape;
};

struct IoRequest {
  // Empty: the placeholders that the outputs need, those that the model file
  // declares first and in its order.
  std::vector<InputRequest> inputs;
  // As above. Empty: those that the model file declares, else found by looking
  // for the graph's ends.
  std::vector<std::string> outputs;
  // Stands for an unknown first dimension.
  int64_t batch = 1;
  // Several ends that could all be outputs are a question; set this to take
  // all of them.
  bool take_all_outputs = false;
};

// One end of the model.
struct GraphTensor {
  // "node" or "node:port", as TensorFlow spells it.
  std::string name;
  Endpoint tensor;
  // DT_INVALID when the op that makes it is not known.
  tensorflow::DataType dtype = tensorflow::DT_INVALID;
  // Inputs: static, the batch filled in. Outputs: what follows from that.
  PartialShape shape;
};

struct GraphIo {
  std::vector<GraphTensor> inputs;
  // Placeholders that the outputs need but that have a default: may be fed.
  // Their shapes may be partly unknown.
  std::vector<GraphTensor> optional_inputs;
  std::vector<GraphTensor> outputs;
  // What was assumed, one sentence each: "input 'x': the unknown batch is 1".
  std::vector<std::string> notes;
};

// The tensors that look like the model's outputs: all of them, where InferIo
// would ask which.
// ERRORS: FailedPrecondition when nothing does.
absl::StatusOr<std::vector<Endpoint>> FindOutputs(const Graph& graph);

// REQUIRES: Verify(graph) is OK; a graph that is not gives an error or a less
// useful answer, never a crash.
// ERRORS:
//   NotFound            a name that is not in the graph, with the nearest ones
//   InvalidArgument     a malformed name, a port that does not exist, a tensor
//                       given twice or as input and output, a shape or type
//                       that contradicts the graph, a cycle
//   FailedPrecondition  a question: several tensors could be the outputs, an
//                       input is missing or its shape is not known. The message
//                       lists the candidates with op, type and shape and ends
//                       with the flag to give, in optctl's spelling
//                       (--outputs=a,b, --inputs=x:1x224x224x3,s:[]).
absl::StatusOr<GraphIo> InferIo(const Graph& graph,
                                const IoRequest& request = {});

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_INFER_IO_H_
