#include "engine/export/convert_file.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::exporting {
namespace {

// A relative difference above which the line says so.
constexpr double kLargeDifference = 0.01;

std::string DescribeDifference(const ExportDifference& difference) {
  if (difference.unequal == 0) {
    return absl::StrCat("read back: all ", difference.elements,
                        " elements of the answers are equal");
  }
  const bool is_large =
      difference.largest > kLargeDifference * difference.magnitude;
  return absl::StrFormat(
      "read back: largest difference %.2g of %.3g ('%s')%s", difference.largest,
      difference.magnitude, difference.output,
      is_large ? ", which is large: look at it before you ship the file" : "");
}

// Sizes for dimensions that stay open in the file, to run the model with: of
// pictures, and of sequences.
constexpr int64_t kPictureSize = 64;
constexpr int64_t kSequenceSize = 16;

// Shapes for all inputs, with those sizes where the graph leaves them open.
graph::IoRequest WithSizes(const graph::Graph& graph,
                           const graph::ShapeMap& shapes,
                           graph::IoRequest request) {
  for (graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!graph::IsPlaceholder(node.op()) || node.uses().empty()) continue;
    graph::PartialShape shape = shapes.Of({id, 0});
    if (!shape.has_rank()) continue;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) >= 0) continue;
      shape.set_dim(i, i == 0              ? 1
                       : shape.rank() == 4 ? kPictureSize
                                           : kSequenceSize);
    }
    request.inputs.push_back({node.name(), std::nullopt, std::move(shape)});
  }
  return request;
}

// What the model's file declares, sizes left open.
graph::GraphIo DeclaredIo(const graph::Graph& graph,
                          const graph::ModelInterface& declared) {
  graph::GraphIo io;
  for (const graph::ModelTensor& input : declared.inputs) {
    io.inputs.push_back({graph.NameOf(input.tensor), input.tensor, {}, {}});
  }
  for (const graph::ModelTensor& output : declared.outputs) {
    io.outputs.push_back({graph.NameOf(output.tensor), output.tensor, {}, {}});
  }
  return io;
}

// Inputs and outputs; where only sizes are missing, some that serve to run it.
absl::StatusOr<graph::GraphIo> FindIo(const graph::Graph& graph,
                                      const graph::IoRequest& request,
                                      bool is_to_run) {
  absl::StatusOr<graph::GraphIo> io = graph::InferIo(graph, request);
  if (io.ok() || !request.inputs.empty() ||
      !absl::IsFailedPrecondition(io.status())) {
    return io;
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph));
  absl::StatusOr<graph::GraphIo> with_sizes =
      graph::InferIo(graph, WithSizes(graph, shapes, request));
  if (with_sizes.ok()) return with_sizes;
  const graph::ModelInterface declared = graph::ReadModelInterface(graph);
  if (is_to_run || declared.outputs.empty()) return io;
  return DeclaredIo(graph, declared);
}

}  // namespace

absl::StatusOr<std::string> ConvertFile(const std::string& from,
                                        const std::string& to,
                                        const ConvertOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadModelDef(from));
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
  if (!graph.ok()) {
    return Annotate(graph.status(), absl::StrCat("'", from, "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           FindIo(*graph, options.io, options.compare));
  ExportOptions written = options.written;
  written.fixes_sizes = !options.io.inputs.empty();
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ExportModel(*graph, io, written));
  const ModelFormat format = options.written.format;
  std::string line =
      absl::StrCat(FormatName(format),
                   format == ModelFormat::kOnnx
                       ? absl::StrCat(" (opset ", options.written.opset, ")")
                       : "",
                   ", ", HumanBytes(static_cast<int64_t>(bytes.size())));
  const bool changes_types =
      options.written.ends != formats::TfliteEnds::kAsTheyAre;
  if (options.compare && changes_types) {
    absl::StrAppend(&line,
                    "; not compared, because its inputs and outputs are of "
                    "other types than the model's");
  } else if (options.compare) {
    const absl::StatusOr<ExportDifference> difference =
        CompareExported(*graph, io, bytes);
    if (!difference.ok() && format == ModelFormat::kTflite) {
      absl::StrAppend(&line, "; not compared: ", difference.status().message());
    } else if (!difference.ok()) {
      return Annotate(difference.status(),
                      "nothing is written, because it could not be compared "
                      "with the model (--verify=no skips this)");
    }
    if (difference.ok()) {
      absl::StrAppend(&line, "; ", DescribeDifference(*difference));
    }
  }
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(to, bytes));
  return line;
}

}  // namespace optfarm::exporting
