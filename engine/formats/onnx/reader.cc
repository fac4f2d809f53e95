#include "engine/formats/onnx/reader.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/graph_builder.h"
#include "engine/formats/onnx/graph_reader.h"
#include "engine/formats/onnx/model_context.h"
#include "engine/formats/onnx/properties.h"
#include "engine/formats/onnx/tensors.h"
#include "engine/formats/tensorflow/binary_graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {
namespace {

using graph::NodeId;

constexpr absl::string_view kFormat = "onnx";

absl::Status CheckVersions(const onnx::ModelProto& model) {
  if (model.ir_version() > kNewestOnnxIr || model.ir_version() < 1) {
    return absl::UnimplementedError(
        absl::StrCat("it has IR version ", model.ir_version(),
                     "; versions 3 to ", kNewestOnnxIr, " are supported"));
  }
  if (!model.has_graph() || model.graph().output().empty()) {
    return absl::InvalidArgumentError("it has no graph with an output");
  }
  return absl::OkStatus();
}

// Placeholders for what is to be fed; initializers that are listed as inputs,
// as old files do, are constants.
void DefineInputs(const onnx::GraphProto& graph, OnnxGraphReader* reader) {
  absl::flat_hash_set<std::string> initialized;
  for (const auto& tensor : graph.initializer()) {
    initialized.insert(tensor.name());
  }
  for (const auto& tensor : graph.sparse_initializer()) {
    initialized.insert(tensor.values().name());
  }
  int position = 0;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (initialized.contains(input.name())) continue;
    const absl::StatusOr<OnnxValueType> type = ReadOnnxType(input.type());
    absl::Status status = type.status();
    if (status.ok() && BitsOfOnnx(type->onnx_type) == 4) {
      status = absl::UnimplementedError(absl::StrCat(
          "inputs of ", OnnxTypeName(type->onnx_type), " are not supported"));
    }
    if (!status.ok()) {
      reader->model().AddReason(
          Annotate(status, absl::StrCat("input '", input.name(), "'")));
      reader->Define(input.name(), Endpoint());
      continue;
    }
    GraphBuilder& builder = reader->builder();
    const Endpoint placeholder = builder.AddPlaceholder(
        graph::NodeNameOf(input.name()), type->dtype, type->shape);
    graph::DeclareInput(
        kFormat, position++, input.name(), type->dim_names,
        builder.graph().mutable_node(placeholder.node)->mutable_def());
    reader->Define(input.name(), placeholder);
  }
}

// The node that stands for a declared output: the one that makes it, where it
// has the output's name and is not one already; else an Identity.
NodeId OutputNode(Endpoint result, const std::string& name,
                  GraphBuilder* builder) {
  const graph::Node& node = builder->graph().node(result.node);
  const bool is_free = result.port == 0 && !graph::IsPlaceholder(node.op()) &&
                       !graph::IsConst(node.op()) &&
                       node.name() == graph::NodeNameOf(name) &&
                       node.FindAttr(graph::kModelOutputAttr) == nullptr;
  if (is_free) return result.node;
  const Endpoint identity = builder->Add("Identity", {result});
  builder->graph().Rename(identity.node, graph::NodeNameOf(name));
  return identity.node;
}

void DeclareOutputs(const onnx::GraphProto& graph,
                    const std::vector<Endpoint>& results,
                    const graph::ModelNotes& notes, GraphBuilder* builder) {
  for (int i = 0; i < graph.output_size(); ++i) {
    const onnx::ValueInfoProto& output = graph.output(i);
    const NodeId node =
        OutputNode(results[static_cast<size_t>(i)], output.name(), builder);
    const absl::StatusOr<OnnxValueType> type = ReadOnnxType(output.type());
    graph::DeclareOutput(
        kFormat, i, output.name(),
        type.ok() ? type->dim_names : std::vector<std::string>(),
        builder->graph().mutable_node(node)->mutable_def());
    if (i > 0) continue;
    graph::SetModelNotes(notes,
                         builder->graph().mutable_node(node)->mutable_def());
  }
}

// Takes away what neither an output needs nor is an input.
void RemoveUnused(graph::Graph* graph) {
  std::vector<NodeId> roots;
  for (const NodeId id : graph->Ids()) {
    const graph::Node& node = graph->node(id);
    if (graph::IsPlaceholder(node.op()) ||
        node.FindAttr(graph::kModelOutputAttr) != nullptr) {
      roots.push_back(id);
    }
  }
  const std::vector<bool> needed = graph::ReachableFrom(*graph, roots);
  std::vector<NodeId> unused;
  for (const NodeId id : graph->Ids()) {
    if (!needed[static_cast<size_t>(id)]) unused.push_back(id);
  }
  graph->RemoveAll(unused);
}

}  // namespace

absl::StatusOr<tensorflow::GraphDef> ReadOnnx(
    absl::string_view bytes, absl::string_view name,
    const std::string& external_data_folder) {
  OPTFARM_RETURN_IF_ERROR(CheckGraphSize(bytes, name));
  const google::protobuf::LogSilencer silence;
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " is an ONNX model that is cut off or damaged; was it copied "
        "completely?"));
  }
  OnnxModelContext context(model, external_data_folder);
  absl::Status status = CheckVersions(model);
  if (status.ok()) {
    status = ReadOpsets(model.opset_import(), context.mutable_opsets());
  }
  if (!status.ok()) {
    context.AddReason(status);
    return context.Refusal(name);
  }
  // What the first version left unsaid.
  context.mutable_opsets()->try_emplace("", 1);
  GraphBuilder builder;
  OnnxGraphReader reader(&context, &builder, nullptr, "");
  DefineInputs(model.graph(), &reader);
  reader.ReadBody(model.graph());
  const std::vector<Endpoint> results = reader.Results(model.graph());
  for (const Endpoint& result : results) {
    if (result.node == graph::kNoNode && !context.has_reasons()) {
      context.AddReason(absl::InternalError("an output could not be made"));
    }
  }
  if (context.has_reasons()) return context.Refusal(name);
  DeclareOutputs(model.graph(), results, ReadOnnxProperties(model), &builder);
  OPTFARM_RETURN_IF_ERROR(Annotate(builder.TakeStatus(), name));
  RemoveUnused(&builder.graph());
  builder.graph().mutable_versions()->set_producer(kGraphProducer);
  *builder.graph().mutable_library() = std::move(*context.mutable_library());
  return std::move(builder.graph()).TakeDef();
}

}  // namespace optfarm::formats
