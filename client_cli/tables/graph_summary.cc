#include "client_cli/tables/graph_summary.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client_cli/tables/json_text.h"
#include "engine/graph/attr.h"
#include "engine/graph/tensor_proto.h"
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

// Ops of nodes and of function bodies, the most frequent first.
std::vector<std::pair<std::string, int64_t>> CountOps(const GraphDef& graph) {
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
  return sorted;
}

struct Facts {
  Nodes inputs, variables, outputs;
  int64_t const_parameters = 0;
  int64_t variable_parameters = 0;
  int64_t control_edges = 0;
  std::map<std::string, int64_t> devices;
  std::vector<std::string> invalid_inputs;
  std::vector<std::pair<std::string, int64_t>> ops;
};

Facts FindFacts(const GraphDef& graph) {
  Facts facts;
  facts.inputs = NodesWithOps(graph, {"Placeholder"});
  facts.variables = NodesWithOps(graph, {"Variable", "VariableV2"});
  facts.outputs = FindOutputs(graph);
  facts.const_parameters = CountElements(NodesWithOps(graph, {"Const"}));
  facts.variable_parameters = CountElements(facts.variables);
  for (const NodeDef& node : graph.node()) {
    facts.control_edges += std::count_if(
        node.input().begin(), node.input().end(),
        [](const std::string& input) { return absl::StartsWith(input, "^"); });
    if (!node.device().empty()) ++facts.devices[node.device()];
  }
  facts.invalid_inputs = FindInvalidInputs(graph);
  facts.ops = CountOps(graph);
  return facts;
}

std::string CountsText(const Facts& facts) {
  std::string text = absl::StrCat(
      "Found ", facts.const_parameters, " (",
      ShortCount(facts.const_parameters), ") const parameters, ",
      facts.variable_parameters, " (", ShortCount(facts.variable_parameters),
      ") variable parameters, and ", facts.control_edges, " control_edges\n");
  for (const auto& [device, count] : facts.devices) {
    absl::StrAppend(&text, count, " nodes assigned to device '", device, "'\n");
  }
  return text;
}

std::string OpsText(const Facts& facts) {
  return absl::StrCat("Op types used: ",
                      absl::StrJoin(facts.ops, ", ",
                                    [](std::string* out, const auto& count) {
                                      absl::StrAppend(out, count.second, " ",
                                                      count.first);
                                    }),
                      "\n");
}

std::string BenchmarkLine(const Facts& facts, const std::string& path,
                          absl::string_view benchmark) {
  Nodes inputs = facts.inputs;
  inputs.insert(inputs.end(), facts.variables.begin(), facts.variables.end());
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
      benchmark, " --graph=", path,
      " --show_flops --input_layer=", absl::StrJoin(inputs, ",", name),
      " --input_layer_type=", absl::StrJoin(inputs, ",", type),
      " --input_layer_shape=", absl::StrJoin(inputs, ":", shape),
      " --output_layer=", absl::StrJoin(facts.outputs, ",", name));
}

nlohmann::ordered_json TensorsJson(const Nodes& nodes) {
  auto list = nlohmann::ordered_json::array();
  for (const NodeDef* node : nodes) {
    list.push_back({{"name", node->name()},
                    {"type", graph::DataTypeName(TypeOf(*node))},
                    {"shape", ShapeText(*node)}});
  }
  return list;
}

std::string FactsJson(const Facts& facts, const std::string& benchmark) {
  nlohmann::ordered_json json;
  json["inputs"] = TensorsJson(facts.inputs);
  json["variables"] = TensorsJson(facts.variables);
  json["outputs"] = nlohmann::ordered_json::array();
  for (const NodeDef* node : facts.outputs) {
    json["outputs"].push_back({{"name", node->name()}, {"op", node->op()}});
  }
  json["const_parameters"] = facts.const_parameters;
  json["variable_parameters"] = facts.variable_parameters;
  json["control_edges"] = facts.control_edges;
  json["devices"] = nlohmann::ordered_json::object();
  for (const auto& [device, count] : facts.devices) {
    json["devices"][device] = count;
  }
  json["invalid_inputs"] = facts.invalid_inputs;
  json["ops"] = nlohmann::ordered_json::array();
  for (const auto& [op, count] : facts.ops) {
    json["ops"].push_back({{"op", op}, {"count", count}});
  }
  json["benchmark"] = benchmark;
  return JsonText(json);
}

}  // namespace

GraphSummary SummarizeGraph(const GraphDef& graph, const std::string& path,
                            absl::string_view benchmark) {
  const Facts facts = FindFacts(graph);
  const std::string line = BenchmarkLine(facts, path, benchmark);
  GraphSummary summary;
  summary.text =
      absl::StrCat(TensorsText(facts.inputs, "inputs", "possible inputs"),
                   TensorsText(facts.variables, "variables", "variables"),
                   OutputsText(facts.outputs), CountsText(facts));
  if (facts.invalid_inputs.empty()) {
    absl::StrAppend(&summary.text, OpsText(facts),
                    "To measure it, try these arguments:\n", line, "\n");
  }
  summary.json = FactsJson(facts, line);
  summary.invalid_inputs = facts.invalid_inputs;
  return summary;
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
