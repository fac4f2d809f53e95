// Inputs and outputs of the model that is written: which they are, and the
// types that the file has for them.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_ENDS_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_ENDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/graph_view.h"
#include "engine/formats/tflite/raising/raised_tensors.h"
#include "engine/formats/tflite/write_options.h"
#include "engine/graph/graph.h"

namespace optfarm::formats::tflite_raising {

struct NamedEnd {
  std::string name;
  ModelEnd end;
};

struct ModelEnds {
  std::vector<NamedEnd> inputs;
  std::vector<NamedEnd> outputs;
};

// ERRORS: graph::InferIo's.
absl::StatusOr<ModelEnds> FindModelEnds(const graph::Graph& graph,
                                        const TfliteWriteOptions& options);

// Gives the inputs their tensors, before the graph is raised.
void AddInputs(const ModelEnds& ends, RaisedTensors* tensors);

// Makes tensors the outputs, after the graph is raised.
void AddOutputs(const ModelEnds& ends, RaisedTensors* tensors);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_ENDS_H_
