#include "engine/formats/onnx/subgraph.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/op_defs.h"

namespace optfarm::formats {
namespace {

using graph::NodeId;
using tensorflow::FunctionDef;

// How a function's nodes name a tensor: "argument", or "node:output:2".
absl::StatusOr<std::string> NameInFunction(
    const graph::Graph& graph, Endpoint tensor,
    const absl::flat_hash_map<NodeId, std::string>& arguments) {
  const auto argument = arguments.find(tensor.node);
  if (argument != arguments.end()) return argument->second;
  const graph::Node& node = graph.node(tensor.node);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) {
    return absl::InternalError(absl::StrCat("there is no op ", node.op()));
  }
  for (const auto& output : op_def->output_arg()) {
    OPTFARM_ASSIGN_OR_RETURN(
        const graph::PortRange ports,
        graph::OutputPorts(*op_def, node.def(), output.name()));
    if (tensor.port >= ports.begin && tensor.port < ports.end) {
      return absl::StrCat(node.name(), ":", output.name(), ":",
                          tensor.port - ports.begin);
    }
  }
  return absl::InternalError(
      absl::StrCat("node ", node.name(), " has no output ", tensor.port));
}

}  // namespace

absl::StatusOr<OnnxSubgraph> ReadSubgraph(
    NodeLowering& n, const onnx::GraphProto& graph,
    const std::vector<SubgraphArgument>& arguments) {
  if (static_cast<size_t>(graph.input_size()) != arguments.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its subgraph '", graph.name(), "' has ",
                     graph.input_size(), " inputs, not ", arguments.size()));
  }
  OnnxSubgraph sub;
  sub.builder = std::make_unique<GraphBuilder>();
  sub.reader = std::make_unique<OnnxGraphReader>(
      &n.reader().model(), sub.builder.get(), &n.reader(), "");
  for (size_t i = 0; i < arguments.size(); ++i) {
    sub.arguments.push_back(sub.builder->AddPlaceholder(
        absl::StrCat("argument_", i), arguments[i].dtype, arguments[i].shape));
    sub.reader->Define(graph.input(static_cast<int>(i)).name(),
                       sub.arguments.back());
  }
  sub.reader->ReadBody(graph);
  sub.results = sub.reader->Results(graph);
  for (const Endpoint& result : sub.results) {
    if (result.node == graph::kNoNode) {
      return absl::InvalidArgumentError(
          absl::StrCat("its subgraph '", graph.name(), "' cannot be read"));
    }
  }
  OPTFARM_RETURN_IF_ERROR(sub.builder->TakeStatus());
  return sub;
}

absl::StatusOr<tensorflow::AttrValue> AddFunction(
    OnnxModelContext* model, absl::string_view prefix,
    const GraphBuilder& builder, const std::vector<Endpoint>& inputs,
    const std::vector<DataType>& input_types,
    const std::vector<Endpoint>& results) {
  const graph::Graph& graph = builder.graph();
  FunctionDef* function = model->mutable_library()->add_function();
  tensorflow::OpDef* signature = function->mutable_signature();
  signature->set_name(model->NewFunctionName(prefix));
  absl::flat_hash_map<NodeId, std::string> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto* arg = signature->add_input_arg();
    arg->set_name(absl::StrCat("in", i));
    arg->set_type(input_types[i]);
    if (inputs[i].node != graph::kNoNode) {
      arguments.emplace(inputs[i].node, arg->name());
    }
  }
  std::vector<NodeId> roots;
  for (const Endpoint& result : results) roots.push_back(result.node);
  const std::vector<bool> needed = graph::ReachableFrom(graph, roots);
  for (const NodeId id : graph.Ids()) {
    if (!needed[static_cast<size_t>(id)] || arguments.contains(id)) continue;
    tensorflow::NodeDef* def = function->add_node_def();
    *def = graph.node(id).def();
    for (const Endpoint& input : graph.node(id).inputs()) {
      OPTFARM_ASSIGN_OR_RETURN(*def->add_input(),
                               NameInFunction(graph, input, arguments));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto* arg = signature->add_output_arg();
    arg->set_name(absl::StrCat("out", i));
    arg->set_type(builder.dtype(results[i]));
    OPTFARM_ASSIGN_OR_RETURN((*function->mutable_ret())[arg->name()],
                             NameInFunction(graph, results[i], arguments));
  }
  tensorflow::AttrValue attr;
  attr.mutable_func()->set_name(signature->name());
  return attr;
}

}  // namespace optfarm::formats
