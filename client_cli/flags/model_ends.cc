#include "client_cli/flags/model_ends.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/graph/model_interface.h"

namespace optfarm::client_cli {
namespace {

absl::StatusOr<std::vector<graph::TensorName>> ReadNames(
    const graph::Graph& graph, const std::string& text, bool has_own_names,
    const std::vector<graph::ModelTensor>& declared) {
  if (!has_own_names) return graph::ParseTensorNames(text);
  std::vector<graph::Endpoint> tensors;
  if (text.empty()) {
    for (const graph::ModelTensor& tensor : declared) {
      tensors.push_back(tensor.tensor);
    }
  }
  for (const absl::string_view name :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    OPTFARM_ASSIGN_OR_RETURN(tensors.emplace_back(),
                             graph::ResolveTensor(graph, name));
  }
  std::vector<graph::TensorName> names;
  for (const graph::Endpoint& tensor : tensors) {
    names.push_back({graph.node(tensor.node).name(), tensor.port});
  }
  return names;
}

}  // namespace

absl::StatusOr<ModelEnds> ReadModelEnds(const graph::Graph& graph,
                                        const std::string& inputs,
                                        const std::string& outputs) {
  const graph::ModelInterface declared = graph::ReadModelInterface(graph);
  const bool has_own_names = !declared.format.empty();
  auto ins = ReadNames(graph, inputs, has_own_names, declared.inputs);
  if (!ins.ok()) return Annotate(ins.status(), "--inputs");
  auto outs = ReadNames(graph, outputs, has_own_names, declared.outputs);
  if (!outs.ok()) return Annotate(outs.status(), "--outputs");
  return ModelEnds{*std::move(ins), *std::move(outs)};
}

}  // namespace optfarm::client_cli
