#include "engine/transforms/layout/lay_out_model.h"

#include <vector>

#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_name.h"
#include "engine/transforms/machinery/pipeline.h"

namespace optfarm::transforms {
namespace {

graph::TensorName NameOfTensor(const graph::Graph& graph,
                               graph::Endpoint tensor) {
  return {graph.node(tensor.node).name(), tensor.port};
}

}  // namespace

absl::Status LayOutModel(absl::Span<const std::string> kept,
                         graph::Graph* graph) {
  const graph::ModelInterface model = graph::ReadModelInterface(*graph);
  if (model.format.empty()) return absl::OkStatus();
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  for (const graph::ModelTensor& input : model.inputs) {
    inputs.push_back(NameOfTensor(*graph, input.tensor));
  }
  for (const graph::ModelTensor& output : model.outputs) {
    outputs.push_back(NameOfTensor(*graph, output.tensor));
  }
  for (const std::string& name : kept) {
    const auto tensor = graph::ResolveTensor(*graph, name);
    if (tensor.ok()) outputs.push_back(NameOfTensor(*graph, *tensor));
  }
  TransformStep step;
  step.name = "remove_transposes";
  PipelineOptions options;
  // Whoever read the graph has checked it or will.
  options.verify = false;
  return RunTransforms(graph, {step}, inputs, outputs, options).status();
}

int CountTransposes(const graph::Graph& graph) {
  int count = 0;
  for (graph::NodeId id : graph.Ids()) {
    count += graph::IsTranspose(graph.node(id).op()) ? 1 : 0;
  }
  return count;
}

}  // namespace optfarm::transforms
