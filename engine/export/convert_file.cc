#include "engine/export/convert_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "engine/export/expose_state.h"
#include "engine/export/flatten_branches.h"
#include "engine/export/unsigned_values.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::exporting {
namespace {

// A share of the magnitude above which the line says so.
constexpr double kLargeDifference = 0.01;

std::string DescribeDifference(const ExportDifference& difference) {
  if (difference.unequal == 0) {
    return absl::StrCat("read back: all ", difference.elements,
                        " elements of the answers are equal");
  }
  const char* remark = "";
  if (difference.IsOneStep()) {
    remark = ", one step of its quantization";
  } else if (difference.IsLarge(kLargeDifference)) {
    remark = ", which is large: look at it before you ship the file";
  }
  return absl::StrFormat("read back: largest difference %.2g of %.3g ('%s')%s",
                         difference.largest, difference.magnitude,
                         difference.output, remark);
}

// Sizes for dimensions that stay open in the file, to run the model with: of
// pictures, and of sequences, the smaller ones first. A window of a layer may
// need the larger ones.
constexpr int64_t kPictureSize = 64;
constexpr int64_t kSequenceSizes[] = {16, 64, 256, 512, 1024, 4096};

// Names of dimensions that stand in front: batches, wherever else they are.
absl::flat_hash_set<std::string> BatchNames(const graph::Graph& graph) {
  absl::flat_hash_set<std::string> names;
  for (graph::NodeId id : graph.Ids()) {
    const auto* dims = graph.node(id).FindAttr(graph::kDimNamesAttr);
    if (dims != nullptr && dims->list().s_size() > 0 &&
        graph::IsPlaceholder(graph.node(id).op())) {
      names.insert(dims->list().s(0));
    }
  }
  names.erase("");
  return names;
}

// One of the sizes above; twice as much where the name says that lengths are
// added up.
int64_t SequenceSize(const std::string& name, int64_t size) {
  const bool is_sum =
      absl::StrContains(name, "total") || absl::StrContains(name, " + ");
  return is_sum ? 2 * size : size;
}

// How open dimensions without a name become sizes.
enum class Unnamed {
  // Batches in front of an input, lengths elsewhere.
  kByPlace,
  // Batches in the middle of three too, as in [layers, batch, units], the state
  // of recurrent layers.
  kBatchOfStates,
};

// Shapes for all inputs, with those sizes where the graph leaves them open.
graph::IoRequest WithSizes(const graph::Graph& graph,
                           const graph::ShapeMap& shapes, int64_t size,
                           Unnamed unnamed, graph::IoRequest request) {
  const absl::flat_hash_set<std::string> batches = BatchNames(graph);
  for (graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (!graph::IsPlaceholder(node.op()) || node.uses().empty()) continue;
    graph::PartialShape shape = shapes.Of({id, 0});
    if (!shape.has_rank()) continue;
    const auto* names = node.FindAttr(graph::kDimNamesAttr);
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) >= 0) continue;
      const std::string name = names != nullptr && i < names->list().s_size()
                                   ? names->list().s(i)
                                   : std::string();
      const bool is_batch = i == 0 || batches.contains(name) ||
                            (unnamed == Unnamed::kBatchOfStates && i == 1 &&
                             shape.rank() == 3 && name.empty());
      shape.set_dim(i, is_batch            ? 1
                       : shape.rank() == 4 ? kPictureSize
                                           : SequenceSize(name, size));
    }
    request.inputs.push_back({node.name(), std::nullopt, std::move(shape)});
  }
  return request;
}

// The requests to try, in order.
std::vector<graph::IoRequest> SizesToTry(const graph::Graph& graph,
                                         const graph::ShapeMap& shapes,
                                         const graph::IoRequest& request) {
  std::vector<graph::IoRequest> list;
  for (const int64_t size : kSequenceSizes) {
    list.push_back(WithSizes(graph, shapes, size, Unnamed::kByPlace, request));
    graph::IoRequest other =
        WithSizes(graph, shapes, size, Unnamed::kBatchOfStates, request);
    const bool is_same = absl::c_equal(
        list.back().inputs, other.inputs,
        [](const auto& a, const auto& b) { return a.shape == b.shape; });
    if (!is_same) list.push_back(std::move(other));
  }
  return list;
}

bool HasOpenSizes(const graph::Graph& graph, const graph::ShapeMap& shapes) {
  return absl::c_any_of(graph.Ids(), [&](graph::NodeId id) {
    return graph::IsPlaceholder(graph.node(id).op()) &&
           !shapes.Of({id, 0}).is_static();
  });
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

// Whether the model can be run with inputs of these shapes.
enum class Runs { kNo, kAsFarAsShapesTell, kYes };

bool HasBranches(const graph::Graph& graph) {
  return absl::c_any_of(graph.Ids(), [&](graph::NodeId id) {
    return graph::HasRole(graph.node(id).op(), graph::OpRole::kIf);
  });
}

// What the model is fed with, and what is fetched.
struct Ends {
  explicit Ends(const graph::GraphIo& io) {
    for (const graph::GraphTensor& input : io.inputs) {
      inputs.push_back({input.tensor, input.shape});
    }
    for (const graph::GraphTensor& output : io.outputs) {
      outputs.push_back(output.tensor);
    }
  }
  std::vector<FedShape> inputs;
  std::vector<graph::Endpoint> outputs;
};

Runs WhetherItRuns(const graph::Graph& graph, const graph::GraphIo& io) {
  const Ends ends(io);
  graph::ShapeOptions options;
  for (const FedShape& fed : ends.inputs) options.feeds[fed.tensor] = fed.shape;
  // Problems within branches are seen when they are part of the graph.
  std::optional<graph::Graph> flat;
  if (HasBranches(graph)) {
    flat = graph.Clone();
    if (!FlattenBranches(ends.inputs, ends.outputs, OpenBranches::kOneRuns,
                         &*flat)
             .ok()) {
      return Runs::kNo;
    }
  }
  const graph::Graph& run = flat ? *flat : graph;
  const auto shapes = graph::InferShapes(run, options);
  if (!shapes.ok() || !shapes->problems().empty()) return Runs::kNo;
  return HasBranches(run) ? Runs::kAsFarAsShapesTell : Runs::kYes;
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
  std::optional<graph::GraphIo> perhaps;
  for (const graph::IoRequest& sizes : SizesToTry(graph, shapes, request)) {
    absl::StatusOr<graph::GraphIo> with_sizes = graph::InferIo(graph, sizes);
    if (!with_sizes.ok()) continue;
    const Runs runs = WhetherItRuns(graph, *with_sizes);
    if (runs == Runs::kYes) return with_sizes;
    if (runs == Runs::kAsFarAsShapesTell && !perhaps) {
      perhaps = *std::move(with_sizes);
    }
  }
  if (perhaps) return *std::move(perhaps);
  const graph::ModelInterface declared = graph::ReadModelInterface(graph);
  if (is_to_run || declared.outputs.empty()) return io;
  return DeclaredIo(graph, declared);
}

// "x:1x16,state:2x1x128".
std::string DescribeShapes(const graph::GraphIo& io) {
  return absl::StrJoin(
      io.inputs, ",", [](std::string* out, const graph::GraphTensor& input) {
        absl::StrAppend(out, input.name, input.shape.rank() == 0 ? "" : ":",
                        absl::StrJoin(input.shape.dims(), "x"));
      });
}

// What is written, and what the model is run with to check it.
struct Written {
  std::string bytes;
  graph::GraphIo io;
  // What the user should know of it.
  std::string note;
  // What is written, where that is not the whole graph.
  std::optional<graph::Graph> part;
};

// Some ops have a form in a format only where sizes are known, and some Ifs
// become one branch only then. A model that cannot keep its sizes open gets the
// first ones that serve to write it, and the note says so.
absl::StatusOr<Written> WriteWithSizes(const graph::Graph& graph,
                                       const graph::IoRequest& request,
                                       const ExportOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph));
  if (!HasOpenSizes(graph, shapes)) {
    return absl::FailedPreconditionError("no size is open");
  }
  ExportOptions fixed = options;
  fixed.fixes_sizes = true;
  for (const graph::IoRequest& sizes : SizesToTry(graph, shapes, request)) {
    absl::StatusOr<graph::GraphIo> io = graph::InferIo(graph, sizes);
    if (!io.ok() || WhetherItRuns(graph, *io) == Runs::kNo) continue;
    absl::StatusOr<std::string> bytes = ExportModel(graph, *io, fixed);
    if (!bytes.ok()) continue;
    const std::string note =
        absl::StrCat("; its open sizes became --inputs=", DescribeShapes(*io));
    return Written{*std::move(bytes), *std::move(io), note, {}};
  }
  return absl::FailedPreconditionError("no sizes serve");
}

// The branches that can run, where the sizes leave one only.
absl::StatusOr<Written> WritePart(const graph::Graph& graph,
                                  const graph::GraphIo& io,
                                  const ExportOptions& options) {
  const Ends ends(io);
  graph::Graph part = graph.Clone();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> left_out,
                           LeaveOutBranches(ends.inputs, ends.outputs, &part));
  if (left_out.empty()) {
    return absl::FailedPreconditionError("all branches can run");
  }
  ExportOptions fixed = options;
  fixed.fixes_sizes = true;
  OPTFARM_ASSIGN_OR_RETURN(std::string bytes, ExportModel(part, io, fixed));
  return Written{std::move(bytes), io,
                 absl::StrCat("; without ", absl::StrJoin(left_out, " and "),
                              ", which cannot run with these sizes"),
                 std::move(part)};
}

absl::StatusOr<Written> WriteModel(const graph::Graph& graph,
                                   const ConvertOptions& options) {
  ExportOptions written = options.written;
  const bool sizes_are_given = !options.io.inputs.empty();
  // An ONNX file keeps its sizes open as long as that is possible.
  const bool may_stay_open =
      !sizes_are_given || written.format == ModelFormat::kOnnx;
  absl::StatusOr<graph::GraphIo> io =
      FindIo(graph, options.io, options.compare);
  absl::Status status = io.status();
  for (const bool fixes_sizes : {false, true}) {
    if (!io.ok() || !(fixes_sizes ? sizes_are_given : may_stay_open)) continue;
    written.fixes_sizes = fixes_sizes;
    absl::StatusOr<std::string> bytes = ExportModel(graph, *io, written);
    if (bytes.ok()) return Written{*std::move(bytes), *std::move(io), "", {}};
    if (status.ok()) status = bytes.status();
  }
  const bool is_graph = written.format == ModelFormat::kGraph ||
                        written.format == ModelFormat::kGraphText;
  if (is_graph || !absl::IsFailedPrecondition(status)) return status;
  if (!sizes_are_given) {
    absl::StatusOr<Written> with_sizes =
        WriteWithSizes(graph, options.io, written);
    if (with_sizes.ok()) return with_sizes;
  }
  if (io.ok() && HasBranches(graph)) {
    absl::StatusOr<Written> part = WritePart(graph, *io, written);
    if (part.ok()) return part;
  }
  return status;
}

// REQUIRES: the state of `stateful`, if any, is exposed in `graph`.
absl::StatusOr<ConvertedModel> Convert(const graph::Graph& graph,
                                       const ConvertOptions& options,
                                       const StatefulModel& stateful) {
  OPTFARM_ASSIGN_OR_RETURN(Written written, WriteModel(graph, options));
  ConvertedModel made;
  made.bytes = std::move(written.bytes);
  const ModelFormat format = options.written.format;
  made.line = absl::StrCat(
      FormatName(format),
      format == ModelFormat::kOnnx
          ? absl::StrCat(" (opset ", options.written.opset, ")")
          : "",
      ", ", HumanBytes(static_cast<int64_t>(made.bytes.size())), written.note,
      stateful.states.empty()
          ? ""
          : absl::StrCat("; its state became ", stateful.states.size(),
                         " inputs and outputs more, state_in/... and "
                         "state_out/..."));
  if (!options.compare) return made;
  if (options.written.ends != formats::TfliteEnds::kAsTheyAre) {
    absl::StrAppend(&made.line,
                    "; not compared, because its inputs and outputs are of "
                    "other types than the model's");
    return made;
  }
  const absl::StatusOr<ExportDifference> difference = CompareExported(
      written.part ? *written.part : graph, written.io, made.bytes, stateful);
  if (difference.ok()) {
    absl::StrAppend(&made.line, "; ", DescribeDifference(*difference));
    made.difference = *difference;
    return made;
  }
  if (format != ModelFormat::kTflite) {
    return Annotate(difference.status(),
                    "nothing is written, because it could not be compared "
                    "with the model (--verify=no skips this)");
  }
  absl::StrAppend(&made.line,
                  "; not compared: ", difference.status().message());
  return made;
}

}  // namespace

absl::StatusOr<ConvertedModel> ConvertGraph(const graph::Graph& graph,
                                            const ConvertOptions& options) {
  const ModelFormat format = options.written.format;
  const auto ids = graph.Ids();
  const bool has_state = std::any_of(ids.begin(), ids.end(), [&](auto id) {
    return graph.node(id).op() == "ReadVariableOrInitial";
  });
  if (!has_state || format == ModelFormat::kGraph ||
      format == ModelFormat::kGraphText) {
    return Convert(graph, options, {});
  }
  graph::Graph exposed = graph.Clone();
  StatefulModel stateful = {&graph, {}};
  OPTFARM_ASSIGN_OR_RETURN(stateful.states, ExposeState(&exposed));
  ConvertOptions with_state = options;
  with_state.written.state = DescribeState(stateful.states);
  for (const ExposedState& state : stateful.states) {
    if (!options.io.inputs.empty()) {
      with_state.io.inputs.push_back({state.input, std::nullopt, std::nullopt});
    }
    if (!options.io.outputs.empty()) {
      with_state.io.outputs.push_back(state.output);
    }
  }
  return Convert(exposed, with_state, stateful);
}

absl::StatusOr<std::string> ConvertFile(const std::string& from,
                                        const std::string& to,
                                        const ConvertOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadModelDef(from));
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
  if (!graph.ok()) {
    return Annotate(graph.status(), absl::StrCat("'", from, "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(ConvertedModel made, ConvertGraph(*graph, options));
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(to, made.bytes));
  if (options.written.format == ModelFormat::kOnnx &&
      !options.written.unsigned_values && QuantizesToInt8(*graph)) {
    absl::StrAppend(&made.line,
                    "; for ONNX Runtime on x86-64, graph convert --unsigned "
                    "keeps more layers on integers");
  }
  return std::move(made.line);
}

}  // namespace optfarm::exporting
