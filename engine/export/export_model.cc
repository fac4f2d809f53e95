#include "engine/export/export_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/export/flatten_branches.h"
#include "engine/export/unroll_recurrent.h"
#include "engine/export/unsigned_values.h"
#include "engine/formats/onnx/properties.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tflite/writer.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/model_notes.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::exporting {
namespace {

using graph::Graph;
using graph::GraphIo;
using graph::GraphTensor;

// What other formats have no place for goes, and constants are computed. A
// step that fails leaves the graph as it was; the writer then says what it
// cannot hold. Ranges may stand in constants that were put together
// (pool_constants), which make_quantization_explicit could not read.
constexpr char kPreparation[] =
    "fold_placeholder(ignore_errors=true) "
    "fold_constants(exclude_op=Dequantize, exclude_op=DequantizeLinear, "
    "exclude_op=QuantizeV2, ignore_errors=true) "
    "make_quantization_explicit(ignore_errors=true) "
    "remove_training_nodes(ignore_errors=true) "
    "remove_control_dependencies(ignore_errors=true) "
    "fold_constants(exclude_op=DequantizeLinear, ignore_errors=true) "
    "flatten_atrous_conv(ignore_errors=true) "
    "fold_batch_norms(ignore_errors=true) "
    "fold_old_batch_norms(ignore_errors=true)";

graph::TensorName NameOf(const Graph& graph, const GraphTensor& tensor) {
  return {graph.node(tensor.tensor.node).name(), tensor.tensor.port};
}

std::vector<graph::TensorName> NamesOf(
    const Graph& graph, const std::vector<GraphTensor>& tensors) {
  std::vector<graph::TensorName> names;
  for (const GraphTensor& tensor : tensors) {
    names.push_back(NameOf(graph, tensor));
  }
  return names;
}

// Cuts the graph at its inputs. One that is no placeholder becomes one of the
// type and shape that it is fed with.
transforms::TransformStep StripStep(const Graph& graph, const GraphIo& io) {
  transforms::TransformStep step{"strip_unused_nodes", {}};
  for (const GraphTensor& input : io.inputs) {
    const graph::Node& node = graph.node(input.tensor.node);
    if (graph::IsPlaceholder(node.op())) continue;
    std::string shape;
    for (int i = 0; i < input.shape.rank(); ++i) {
      absl::StrAppend(&shape, i == 0 ? "" : ",", input.shape.dim(i));
    }
    step.parameters.push_back({"name", node.name()});
    step.parameters.push_back(
        {"type_for_name", graph::DataTypeName(input.dtype)});
    step.parameters.push_back({"shape_for_name", shape});
  }
  return step;
}

absl::Status Prepare(const GraphIo& io, const ExportOptions& options,
                     Graph* graph) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<transforms::TransformStep> steps,
                           transforms::ParseTransforms(kPreparation));
  // Older opsets and TensorFlow Lite have no blocks along an axis: floats.
  const bool keeps_blocks =
      options.format == ModelFormat::kOnnx && options.opset >= 21;
  for (transforms::TransformStep& step : steps) {
    if (step.name == "make_quantization_explicit") {
      step.parameters.push_back({"type", options.activations});
    } else if (step.name == "fold_constants" && keeps_blocks) {
      step.parameters.push_back({"exclude_op", "DequantizeBlocks"});
    }
  }
  steps.insert(steps.begin(), StripStep(*graph, io));
  if (options.format == ModelFormat::kTflite) {
    // Its operators want channels last, and narrow weights themselves.
    steps.push_back({"remove_transposes", {{"ignore_errors", "true"}}});
  } else if (options.half_weights) {
    steps.push_back({"weights_to_half", {}});
  }
  return transforms::RunTransforms(graph, steps, NamesOf(*graph, io.inputs),
                                   NamesOf(*graph, io.outputs))
      .status();
}

absl::Status Flatten(const GraphIo& io, absl::Span<const FedShape> fed,
                     OpenBranches open, Graph* graph) {
  std::vector<graph::Endpoint> outputs;
  for (const GraphTensor& output : io.outputs) {
    outputs.push_back(output.tensor);
  }
  return FlattenBranches(fed, outputs, open, graph);
}

// What the file says of the model: what its own says, and what `options` say
// instead. TensorFlow Lite's entries are no properties of others.
graph::ModelNotes NotesFor(const Graph& graph, const ExportOptions& options) {
  graph::ModelNotes notes = graph::ReadModelNotes(graph);
  if (!options.metadata.labels.empty()) notes.labels = options.metadata.labels;
  if (!options.metadata.mean.empty()) {
    notes.mean = options.metadata.mean;
    notes.std = options.metadata.std;
  }
  if (graph::ReadModelInterface(graph).format != "onnx") {
    notes.properties.clear();
  }
  return notes;
}

absl::StatusOr<std::string> ExportOnnx(const Graph& original, const GraphIo& io,
                                       const ExportOptions& options) {
  formats::OnnxWriteOptions write;
  write.opset = options.opset;
  write.outputs = NamesOf(original, io.outputs);
  write.metadata = formats::OnnxPropertiesOf(NotesFor(original, options));
  if (!options.state.empty()) {
    write.metadata.push_back({"optfarm.state", options.state});
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap own,
                           graph::InferShapes(original));
  std::vector<FedShape> fed;
  for (const GraphTensor& input : io.inputs) {
    formats::OnnxWriteOptions::Input written{NameOf(original, input), {}};
    // What the graph says stays, so that open dimensions do.
    const graph::PartialShape& shape = own.Of(input.tensor);
    const bool is_given = options.fixes_sizes || !shape.has_rank();
    if (is_given) written.shape = input.shape;
    write.inputs.push_back(std::move(written));
    fed.push_back({input.tensor, is_given ? input.shape : shape});
  }
  Graph graph = original.Clone();
  OPTFARM_RETURN_IF_ERROR(Flatten(io, fed, OpenBranches::kOneRuns, &graph));
  OPTFARM_RETURN_IF_ERROR(UnrollRecurrent(fed, OnnxHoldsLayer, &graph));
  OPTFARM_RETURN_IF_ERROR(Prepare(io, options, &graph));
  if (options.unsigned_values) {
    std::vector<graph::Endpoint> outputs;
    for (const GraphTensor& output : io.outputs) {
      const graph::TensorName name = NameOf(original, output);
      outputs.push_back({graph.Find(name.node), name.port});
    }
    OPTFARM_RETURN_IF_ERROR(MakeValuesUnsigned(outputs, &graph));
  }
  return formats::WriteOnnx(graph, write);
}

// The shape of an input in the file: the graph's own, whose batch is the one
// that the model is run with unless it is to stay open.
graph::PartialShape WrittenShape(const GraphTensor& input,
                                 const graph::PartialShape& own,
                                 const ExportOptions& options) {
  graph::PartialShape shape = options.fixes_sizes ? input.shape : own;
  if (!shape.has_rank()) shape = input.shape.has_rank() ? input.shape : own;
  if (!shape.has_rank() || shape.rank() == 0) return shape;
  if (options.dynamic_batch && own.has_rank() && own.rank() == shape.rank() &&
      own.dim(0) < 0) {
    shape.set_dim(0, graph::kUnknownDim);
  } else if (shape.dim(0) < 0) {
    shape.set_dim(0, input.shape.is_static() ? input.shape.dim(0) : 1);
  }
  return shape;
}

bool HasOneChannel(const GraphIo& io) {
  if (io.inputs.empty()) return false;
  const graph::PartialShape& shape = io.inputs[0].shape;
  return shape.has_rank() && shape.rank() == 4 && shape.dim(3) == 1;
}

absl::StatusOr<std::string> ExportTflite(const Graph& original,
                                         const GraphIo& io,
                                         const ExportOptions& options) {
  formats::TfliteWriteOptions write;
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap own,
                           graph::InferShapes(original));
  write.ends = options.ends;
  if (!options.state.empty()) {
    absl::StrAppend(&write.description, "\n", options.state);
  }
  if (options.half_weights) write.weights = formats::TfliteWeights::kHalf;
  if (options.int8_weights) write.weights = formats::TfliteWeights::kInt8;
  std::vector<FedShape> fed;
  for (const GraphTensor& input : io.inputs) {
    graph::InputRequest& request = write.io.inputs.emplace_back();
    request.name = graph::ToString(NameOf(original, input));
    graph::PartialShape shape =
        WrittenShape(input, own.Of(input.tensor), options);
    fed.push_back({input.tensor, shape});
    if (shape.has_rank()) request.shape = std::move(shape);
  }
  for (const graph::TensorName& output : NamesOf(original, io.outputs)) {
    write.io.outputs.push_back(graph::ToString(output));
  }
  Graph graph = original.Clone();
  OPTFARM_RETURN_IF_ERROR(Flatten(io, fed, OpenBranches::kBothRun, &graph));
  OPTFARM_RETURN_IF_ERROR(UnrollRecurrent(fed, TfliteHoldsLayer, &graph));
  OPTFARM_RETURN_IF_ERROR(Prepare(io, options, &graph));
  const graph::ModelNotes notes = NotesFor(original, options);
  formats::TfliteMetadata metadata = options.metadata;
  metadata.labels = notes.labels;
  metadata.mean = notes.mean;
  metadata.std = notes.std;
  metadata.is_gray = metadata.is_gray || HasOneChannel(io);
  return formats::WriteTflite(graph, write, metadata);
}

}  // namespace

absl::string_view FormatName(ModelFormat format) {
  switch (format) {
    case ModelFormat::kGraph:
      return "pb";
    case ModelFormat::kGraphText:
      return "pbtxt";
    case ModelFormat::kOnnx:
      return "onnx";
    case ModelFormat::kTflite:
      return "tflite";
  }
  return "";
}

absl::StatusOr<ModelFormat> FormatOfPath(absl::string_view path) {
  for (const ModelFormat format : {ModelFormat::kGraph, ModelFormat::kGraphText,
                                   ModelFormat::kOnnx, ModelFormat::kTflite}) {
    if (absl::EndsWithIgnoreCase(path, absl::StrCat(".", FormatName(format)))) {
      return format;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the name '", path,
      "' does not say which format to write; end it in .pb, .pbtxt, .onnx "
      "or .tflite"));
}

bool FindsRangesInRuns(const Graph& graph) {
  const auto ids = graph.Ids();
  return std::any_of(ids.begin(), ids.end(), [&](graph::NodeId id) {
    const std::string& op = graph.node(id).op();
    return graph::HasRole(op, graph::OpRole::kRequantizationRange) ||
           graph::HasRole(op, graph::OpRole::kRequantizationRangePerChannel);
  });
}

absl::StatusOr<std::string> ExportModel(const Graph& graph, const GraphIo& io,
                                        const ExportOptions& options) {
  switch (options.format) {
    case ModelFormat::kOnnx:
      return ExportOnnx(graph, io, options);
    case ModelFormat::kTflite:
      return ExportTflite(graph, io, options);
    case ModelFormat::kGraphText:
      return formats::SerializeGraphDef(graph.ToDef(),
                                        formats::GraphEncoding::kText);
    case ModelFormat::kGraph:
      break;
  }
  return formats::SerializeGraphDef(graph.ToDef());
}

}  // namespace optfarm::exporting
