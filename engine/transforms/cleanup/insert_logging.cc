// insert_logging: puts Print nodes behind chosen nodes, which write the values
// that pass when the graph runs.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/op_defs.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

bool IsChosen(const graph::Node& node, const std::vector<std::string>& ops,
              const std::vector<std::string>& prefixes) {
  const bool has_op =
      ops.empty() || std::find(ops.begin(), ops.end(), node.op()) != ops.end();
  const bool has_prefix =
      prefixes.empty() ||
      std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) {
        return absl::StartsWith(node.name(), prefix);
      });
  return has_op && has_prefix && node.op() != "Print";
}

// Outputs that something reads, ascending; a control edge counts as output 0.
std::vector<int> PortsInUse(const graph::Node& node) {
  std::vector<int> ports;
  for (const graph::Use& use : node.uses()) {
    ports.push_back(std::max(use.port, 0));
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  return ports;
}

std::string Message(const graph::Node& node,
                    const TransformArguments& arguments) {
  return absl::StrCat(
      arguments.Bool("show_op") ? absl::StrCat(";", node.op(), ";") : "",
      arguments.Bool("show_name") ? absl::StrCat(";", node.name(), "__print__;")
                                  : "",
      arguments.String("message"));
}

// Adds the node that prints these outputs.
// ERRORS: FailedPrecondition when the node cannot be printed, with the reason;
// others for a node that is malformed.
absl::Status AddPrint(NodeId id, const std::vector<int>& ports, NodeId before,
                      const TransformArguments& arguments, Graph* graph) {
  const graph::Node& node = graph->node(id);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) {
    return absl::NotFoundError(absl::StrCat("Op type not registered '",
                                            node.op(), "' of node '",
                                            node.name(), "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<tensorflow::DataType> types,
                           graph::OutputTypes(*op_def, node.def()));
  if (types.empty()) {
    return absl::FailedPreconditionError("it has no outputs");
  }
  std::vector<Endpoint> inputs = {{id, 0}};
  // Only the types of what is printed: TensorFlow lists all outputs' types,
  // which makes an invalid node when one is not in use.
  std::vector<tensorflow::DataType> printed;
  for (int port : ports) {
    if (port >= static_cast<int>(types.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node '", node.name(), "' (", node.op(), ") has no output ", port));
    }
    inputs.push_back({id, port});
    printed.push_back(graph::BaseType(types[port]));
  }
  tensorflow::NodeDef def;
  def.set_name(absl::StrCat(node.name(), "__print__"));
  def.set_op("Print");
  def.set_device(node.device());
  graph::SetType(&def, "T", graph::BaseType(types[0]));
  graph::SetTypes(&def, "U", printed);
  graph::SetString(&def, "message", Message(node, arguments));
  graph::SetInt(&def, "first_n", arguments.Int("first_n"));
  graph::SetInt(&def, "summarize", arguments.Int("summarize"));
  const NodeId print = graph->Add(std::move(def), inputs, {}, before);
  graph->RedirectUses({id, 0}, {print, 0}, print);
  return absl::OkStatus();
}

absl::Status InsertLogging(Graph* graph, TransformContext* context) {
  const TransformArguments& arguments = context->arguments();
  const std::vector<std::string> ops = arguments.Strings("op");
  const std::vector<std::string> prefixes = arguments.Strings("prefix");
  const std::vector<NodeId> ids = graph->Ids();
  for (size_t i = 0; i < ids.size(); ++i) {
    const graph::Node& node = graph->node(ids[i]);
    if (!IsChosen(node, ops, prefixes)) continue;
    const std::vector<int> ports = PortsInUse(node);
    if (ports.empty()) {
      context->Skip(node.name(), "nothing reads it");
      continue;
    }
    const NodeId next = i + 1 < ids.size() ? ids[i + 1] : graph::kNoNode;
    const absl::Status added = AddPrint(ids[i], ports, next, arguments, graph);
    if (added.code() == absl::StatusCode::kFailedPrecondition) {
      context->Skip(node.name(), added.message());
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(added);
    context->CountChange();
  }
  return absl::OkStatus();
}

}  // namespace

TransformDef InsertLoggingTransform() {
  return {
      .name = "insert_logging",
      .summary =
          "Makes the graph print the values of selected nodes when it runs.",
      .parameters = {{.name = "op",
                      .help = "Only nodes of these ops.",
                      .repeated = true},
                     {.name = "prefix",
                      .help = "Only nodes whose names begin with one of these.",
                      .repeated = true},
                     {.name = "show_op",
                      .type = ParameterType::kBool,
                      .help = "Prints the node's op before the message.",
                      .default_value = "false"},
                     {.name = "show_name",
                      .type = ParameterType::kBool,
                      .help = "Prints the Print node's name before the "
                              "message.",
                      .default_value = "false"},
                     {.name = "message", .help = "Text before the values."},
                     {.name = "first_n",
                      .type = ParameterType::kInt,
                      .help = "Maximum number of times to print; -1: always.",
                      .default_value = "-1"},
                     {.name = "summarize",
                      .type = ParameterType::kInt,
                      .help = "Maximum number of elements to print of each "
                              "tensor.",
                      .default_value = "1024"}},
      .run = InsertLogging};
}

}  // namespace optfarm::transforms
