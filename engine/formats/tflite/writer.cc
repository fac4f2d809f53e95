// From a graph to a file: ends, operators, what nobody reads, bytes.

#include "engine/formats/tflite/writer.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/graph_raiser.h"
#include "engine/formats/tflite/raising/graph_view.h"
#include "engine/formats/tflite/raising/model_draft.h"
#include "engine/formats/tflite/raising/model_ends.h"
#include "engine/formats/tflite/raising/model_packer.h"
#include "engine/formats/tflite/raising/raised_tensors.h"

namespace optfarm::formats {
namespace {

using tflite_raising::DraftOperator;
using tflite_raising::DraftTensor;
using tflite_raising::GraphView;
using tflite_raising::ModelDraft;
using tflite_raising::ModelEnd;
using tflite_raising::ModelEnds;
using tflite_raising::NamedEnd;
using tflite_raising::RaisedTensors;

// The reasons of the nodes that the model needs.
absl::Status CheckWritten(const ModelDraft& draft,
                          const std::vector<std::string>& reasons) {
  std::string list;
  int count = 0;
  for (const DraftOperator& op : draft.operators) {
    if (op.refusal < 0) continue;
    absl::StrAppend(&list, "\n  ", reasons[op.refusal]);
    ++count;
  }
  if (count == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the graph cannot be written as a TensorFlow Lite model: ", count,
      count == 1 ? " node is" : " nodes are", " in the way:", list));
}

// Tensors come from somewhere. A constant whose type the format does not have
// does not.
absl::Status CheckSources(const ModelDraft& draft) {
  std::vector<bool> has_source(draft.tensors.size(), false);
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    has_source[i] = draft.tensors[i].is_constant;
  }
  for (int input : draft.inputs) has_source[input] = true;
  for (const DraftOperator& op : draft.operators) {
    for (int input : op.inputs) {
      if (input == tflite_raising::kNoTensor || has_source[input]) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the graph cannot be written as a TensorFlow Lite model: the format "
          "has no form for tensor '",
          draft.tensors[input].name,
          "'; if it is a constant, convert it to "
          "float or an integer type"));
    }
    for (int output : op.outputs) has_source[output] = true;
  }
  return absl::OkStatus();
}

// Dimensions are 32-bit numbers in the file.
absl::Status CheckSizes(const ModelDraft& draft) {
  for (const DraftTensor& tensor : draft.tensors) {
    if (!tensor.shape.has_rank()) continue;
    for (int64_t dim : tensor.shape.dims()) {
      if (dim > 0x7fffffff) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the graph cannot be written as a TensorFlow Lite model: tensor '",
            tensor.name, "' has shape ", tensor.shape.ToString(),
            ", whose dimensions do not fit into 32 bits"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> WriteTflite(const graph::Graph& graph,
                                        const TfliteWriteOptions& options,
                                        const TfliteMetadata& metadata) {
  OPTFARM_ASSIGN_OR_RETURN(const ModelEnds ends,
                           tflite_raising::FindModelEnds(graph, options));
  std::vector<ModelEnd> inputs;
  for (const NamedEnd& input : ends.inputs) inputs.push_back(input.end);
  std::vector<graph::Endpoint> outputs;
  for (const NamedEnd& output : ends.outputs) {
    outputs.push_back(output.end.tensor);
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const GraphView view,
      GraphView::Of(graph, std::move(inputs), std::move(outputs)));
  ModelDraft draft;
  draft.description = options.description;
  RaisedTensors tensors(view, options, &draft);
  tflite_raising::AddInputs(ends, &tensors);
  const std::vector<std::string> reasons = tflite_raising::RaiseGraph(&tensors);
  tflite_raising::AddOutputs(ends, &tensors);
  draft.RemoveUnused();
  OPTFARM_RETURN_IF_ERROR(CheckWritten(draft, reasons));
  OPTFARM_RETURN_IF_ERROR(CheckSources(draft));
  OPTFARM_RETURN_IF_ERROR(CheckSizes(draft));
  if (metadata.empty()) return tflite_raising::PackModel(draft, {});
  OPTFARM_ASSIGN_OR_RETURN(
      std::string model,
      tflite_raising::PackModel(
          draft,
          {{kTfliteMetadataName, PackTfliteMetadata(metadata, draft.input_names,
                                                    draft.output_names)}}));
  if (metadata.labels.empty()) return model;
  return AppendTfliteLabels(std::move(model), metadata.labels);
}

}  // namespace optfarm::formats
