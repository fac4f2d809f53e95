#include "client_cli/graph_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/graph/tensor_proto.h"
#include "engine/runtime/tensor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::client_cli {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

using Nodes = std::vector<const NodeDef*>;

// The node an input string reads, whatever its prefix and port.
std::string InputNode(const std::string& input) {
  const size_t start = absl::StartsWith(input, "^") ? 1 : 0;
  return input.substr(start, input.find(':', start) - start);
}

tensorflow::DataType TypeOf(const NodeDef& node) {
  const tensorflow::AttrValue* attr = graph::FindAttr(node, "dtype");
  return attr == nullptr ? tensorflow::DT_INVALID : attr->type();
}

std::string TypeText(const NodeDef& node) {
  const tensorflow::DataType dtype = TypeOf(node);
  return absl::StrCat(
      dtype == tensorflow::DT_INVALID ? "INVALID" : graph::DataTypeName(dtype),
      "(", static_cast<int>(dtype), ")");
}

std::string ShapeText(const NodeDef& node) {
  const tensorflow::AttrValue* attr = graph::FindAttr(node, "shape");
  if (attr == nullptr) return "None";
  if (attr->value_case() != tensorflow::AttrValue::kShape) {
    return "not a shape";
  }
  const tensorflow::TensorShapeProto& shape = attr->shape();
  if (shape.unknown_rank()) return "<unknown>";
  std::vector<std::string> dims;
  for (const auto& dim : shape.dim()) {
    if (dim.size() < -1) {
      return absl::StrCat("a dimension of ", dim.size(), " is not allowed");
    }
    dims.push_back(dim.size() == -1 ? "?" : absl::StrCat(dim.size()));
  }
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// The shape as benchmark flags take it: "-1,224,224,3"; "" when unknown.
std::string ShapeFlag(const NodeDef& node) {
  const tensorflow::AttrValue* attr = graph::FindAttr(node, "shape");
  if (attr == nullptr || attr->shape().unknown_rank()) return "";
  return absl::StrJoin(attr->shape().dim(), ",",
                       [](std::string* out, const auto& dim) {
                         absl::StrAppend(out, dim.size());
                       });
}

std::string TensorsText(const Nodes& nodes, absl::string_view none,
                        absl::string_view kind) {
  if (nodes.empty()) return absl::StrCat("No ", none, " spotted.\n");
  std::string text = absl::StrCat("Found ", nodes.size(), " ", kind, ": ");
  for (const NodeDef* node : nodes) {
    absl::StrAppend(&text, "(name=", node->name(), ", type=", TypeText(*node),
                    ", shape=", ShapeText(*node), ") ");
  }
  return absl::StrCat(text, "\n");
}

std::string OutputsText(const Nodes& outputs) {
  if (outputs.empty()) return "No outputs spotted.\n";
  std::string text =
      absl::StrCat("Found ", outputs.size(), " possible outputs: ");
  for (const NodeDef* node : outputs) {
    absl::StrAppend(&text, "(name=", node->name(), ", op=", node->op(), ") ");
  }
  return absl::StrCat(text, "\n");
}

Nodes NodesWithOps(const GraphDef& graph, const std::set<std::string>& ops) {
  Nodes nodes;
  for (const NodeDef& node : graph.node()) {
    if (ops.contains(node.op())) nodes.push_back(&node);
  }
  return nodes;
}

Nodes FindOutputs(const GraphDef& graph) {
  static const auto* const kNeverOutputs =
      new std::set<std::string>{"Const", "Assign", "NoOp", "Placeholder"};
  absl::flat_hash_set<std::string> consumed;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      consumed.insert(InputNode(input));
    }
  }
  Nodes outputs;
  for (const NodeDef& node : graph.node()) {
    if (!consumed.contains(node.name()) &&
        !kNeverOutputs->contains(node.op())) {
      outputs.push_back(&node);
    }
  }
  return outputs;
}

// Elements of the tensors in attribute `value`; what cannot be decoded counts
// nothing.
int64_t CountElements(const Nodes& nodes) {
  int64_t count = 0;
  for (const NodeDef* node : nodes) {
    const auto tensor = graph::GetTensor(*node, "value");
    if (!tensor.ok() || !graph::CheckTensorProto(**tensor).ok()) continue;
    const auto elements = graph::ElementCount((*tensor)->tensor_shape());
    if (elements.ok()) count += *elements;
  }
  return count;
}

std::string CountsText(const GraphDef& graph, const Nodes& variables) {
  int64_t control_edges = 0;
  std::map<std::string, int64_t> devices;
  for (const NodeDef& node : graph.node()) {
    control_edges += std::count_if(
        node.input().begin(), node.input().end(),
        [](const std::string& input) { return absl::StartsWith(input, "^"); });
    if (!node.device().empty()) ++devices[node.device()];
  }
  const int64_t constants = CountElements(NodesWithOps(graph, {"Const"}));
  const int64_t variable = CountElements(variables);
  std::string text = absl::StrCat(
      "Found ", constants, " (", ShortCount(constants), ") const parameters, ",
      variable, " (", ShortCount(variable), ") variable parameters, and ",
      control_edges, " control_edges\n");
  for (const auto& [device, count] : devices) {
    absl::StrAppend(&text, count, " nodes assigned to device '", device, "'\n");
  }
  return text;
}

std::vector<std::string> FindInvalidInputs(const GraphDef& graph) {
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeDef& node : graph.node()) names.insert(node.name());
  std::vector<std::string> invalid;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (names.contains(InputNode(input))) continue;
      invalid.push_back(
          absl::StrCat("Invalid input ", input, " for node ", node.name()));
    }
  }
  return invalid;
}

std::string OpsText(const GraphDef& graph) {
  std::map<std::string, int64_t> counts;
  for (const NodeDef& node : graph.node()) ++counts[node.op()];
  for (const auto& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) ++counts[node.op()];
  }
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(),
                                                      counts.end());
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  return absl::StrCat("Op types used: ",
                      absl::StrJoin(sorted, ", ",
                                    [](std::string* out, const auto& count) {
                                      absl::StrAppend(out, count.second, " ",
                                                      count.first);
                                    }),
                      "\n");
}

std::string BenchmarkText(Nodes inputs, const Nodes& variables,
                          const Nodes& outputs, const std::string& path) {
  inputs.insert(inputs.end(), variables.begin(), variables.end());
  const auto name = [](std::string* out, const NodeDef* node) {
    out->append(node->name());
  };
  const auto type = [](std::string* out, const NodeDef* node) {
    out->append(graph::DataTypeName(TypeOf(*node)));
  };
  const auto shape = [](std::string* out, const NodeDef* node) {
    out->append(ShapeFlag(*node));
  };
  return absl::StrCat(
      "To measure it, try these arguments:\noptctl graph benchmark --graph=",
      path, " --show_flops --input_layer=", absl::StrJoin(inputs, ",", name),
      " --input_layer_type=", absl::StrJoin(inputs, ",", type),
      " --input_layer_shape=", absl::StrJoin(inputs, ":", shape),
      " --output_layer=", absl::StrJoin(outputs, ",", name), "\n");
}

// ", value=Tensor<type: float shape: [2] values: 1 2>".
std::string ConstantText(const NodeDef& node) {
  const auto proto = graph::GetTensor(node, "value");
  if (!proto.ok()) return ", value=(none)";
  const auto tensor = runtime::Tensor::FromProto(**proto);
  if (!tensor.ok()) {
    return absl::StrCat(", value=(", std::string(tensor.status().message()),
                        ")");
  }
  // DebugString is "float [2]: 1 2 3 ...".
  const std::string described = tensor->DebugString(3);
  const size_t values = described.find("]: ");
  return absl::StrCat(
      ", value=Tensor<type: ", graph::DataTypeName(tensor->dtype()),
      " shape: ", tensor->shape().ToString(), " values: ",
      values == std::string::npos ? "" : described.substr(values + 3), ">");
}

}  // namespace

GraphSummary SummarizeGraph(const GraphDef& graph, const std::string& path) {
  const Nodes inputs = NodesWithOps(graph, {"Placeholder"});
  const Nodes variables = NodesWithOps(graph, {"Variable", "VariableV2"});
  const Nodes outputs = FindOutputs(graph);
  GraphSummary summary;
  summary.text =
      absl::StrCat(TensorsText(inputs, "inputs", "possible inputs"),
                   TensorsText(variables, "variables", "variables"),
                   OutputsText(outputs), CountsText(graph, variables));
  summary.invalid_inputs = FindInvalidInputs(graph);
  if (summary.invalid_inputs.empty()) {
    absl::StrAppend(&summary.text, OpsText(graph),
                    BenchmarkText(inputs, variables, outputs, path));
  }
  return summary;
}

absl::StatusOr<std::string> PrintGraphStructure(const GraphDef& graph) {
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph indexed,
                           graph::Graph::FromDef(graph));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order,
                           graph::ExecutionOrder(indexed));
  std::string text;
  for (const graph::NodeId id : order) {
    const graph::Node& node = indexed.node(id);
    std::vector<std::string> inputs;
    for (const graph::Endpoint& input : node.inputs()) {
      inputs.push_back(indexed.NameOf(input));
    }
    for (const graph::NodeId control : node.control_inputs()) {
      inputs.push_back(absl::StrCat("^", indexed.node(control).name()));
    }
    absl::StrAppend(&text, node.name(), " (", node.op(), "): [",
                    absl::StrJoin(inputs, ", "), "]",
                    node.op() == "Const" ? ConstantText(node.def()) : "", "\n");
  }
  return text;
}

std::string ShortCount(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  if (count >= 1'000'000'000'000'000) {
    return absl::StrFormat("%0.3G", static_cast<double>(count));
  }
  static constexpr char kUnits[] = "kMBT";
  const char* unit = kUnits;
  while (count >= 1'000'000) {
    count /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.2f%c", static_cast<double>(count) / 1000, *unit);
}

}  // namespace optfarm::client_cli
