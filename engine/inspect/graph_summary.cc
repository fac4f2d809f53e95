#include "engine/inspect/graph_summary.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/tensor_proto.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

using Nodes = std::vector<const NodeDef*>;

// The node an input string reads, whatever its prefix and port.
std::string InputNode(const std::string& input) {
  const size_t start = absl::StartsWith(input, "^") ? 1 : 0;
  return input.substr(start, input.find(':', start) - start);
}

// The file's name of a node's first output.
std::string NameInFile(const NodeDef& node) {
  const tensorflow::AttrValue* names =
      graph::FindAttr(node, graph::kTensorNamesAttr);
  if (names == nullptr || names->list().s().empty() ||
      names->list().s(0).empty()) {
    return node.name();
  }
  return names->list().s(0);
}

SummaryTensor TensorOf(const NodeDef& node) {
  using ShapeKind = SummaryTensor::ShapeKind;
  SummaryTensor tensor;
  tensor.name = node.name();
  tensor.name_in_file = NameInFile(node);
  const tensorflow::AttrValue* dtype = graph::FindAttr(node, "dtype");
  if (dtype != nullptr) tensor.dtype = dtype->type();
  const tensorflow::AttrValue* shape = graph::FindAttr(node, "shape");
  if (shape == nullptr) {
    tensor.shape_kind = ShapeKind::kNotGiven;
  } else if (shape->value_case() != tensorflow::AttrValue::kShape) {
    tensor.shape_kind = ShapeKind::kNotAShape;
  } else if (shape->shape().unknown_rank()) {
    tensor.shape_kind = ShapeKind::kUnknownRank;
  } else {
    tensor.shape_kind = ShapeKind::kDims;
    for (const auto& dim : shape->shape().dim()) {
      tensor.dims.push_back(dim.size());
    }
  }
  return tensor;
}

std::vector<SummaryTensor> TensorsOf(const Nodes& nodes) {
  std::vector<SummaryTensor> tensors;
  for (const NodeDef* node : nodes) tensors.push_back(TensorOf(*node));
  return tensors;
}

Nodes NodesWithOps(const GraphDef& graph, const std::set<std::string>& ops) {
  Nodes nodes;
  for (const NodeDef& node : graph.node()) {
    if (ops.contains(node.op())) nodes.push_back(&node);
  }
  return nodes;
}

// Nodes with an attribute that says which input or output of the file they are,
// in the file's order.
Nodes DeclaredNodes(const GraphDef& graph, absl::string_view attr) {
  std::multimap<int64_t, const NodeDef*> declared;
  for (const NodeDef& node : graph.node()) {
    const tensorflow::AttrValue* position = graph::FindAttr(node, attr);
    if (position != nullptr) declared.emplace(position->i(), &node);
  }
  Nodes nodes;
  for (const auto& [position, node] : declared) nodes.push_back(node);
  return nodes;
}

std::vector<SummaryOutput> FindOutputs(const GraphDef& graph) {
  std::vector<SummaryOutput> outputs;
  for (const NodeDef* node : DeclaredNodes(graph, graph::kModelOutputAttr)) {
    outputs.push_back({node->name(), NameInFile(*node), node->op()});
  }
  if (!outputs.empty()) return outputs;
  static const auto* const kNeverOutputs =
      new std::set<std::string>{"Const", "Assign", "NoOp", "Placeholder"};
  absl::flat_hash_set<std::string> consumed;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      consumed.insert(InputNode(input));
    }
  }
  for (const NodeDef& node : graph.node()) {
    if (!consumed.contains(node.name()) &&
        !kNeverOutputs->contains(node.op())) {
      outputs.push_back({node.name(), node.name(), node.op()});
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

std::vector<InvalidInput> FindInvalidInputs(const GraphDef& graph) {
  absl::flat_hash_set<absl::string_view> names;
  for (const NodeDef& node : graph.node()) names.insert(node.name());
  std::vector<InvalidInput> invalid;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      if (names.contains(InputNode(input))) continue;
      invalid.push_back({input, node.name()});
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

}  // namespace

GraphSummary SummarizeGraph(const GraphDef& graph) {
  const Nodes variables = NodesWithOps(graph, {"Variable", "VariableV2"});
  GraphSummary summary;
  const Nodes declared = DeclaredNodes(graph, graph::kModelInputAttr);
  summary.inputs = TensorsOf(
      declared.empty() ? NodesWithOps(graph, {"Placeholder"}) : declared);
  summary.variables = TensorsOf(variables);
  summary.outputs = FindOutputs(graph);
  summary.const_parameters = CountElements(NodesWithOps(graph, {"Const"}));
  summary.variable_parameters = CountElements(variables);
  for (const NodeDef& node : graph.node()) {
    summary.control_edges += std::count_if(
        node.input().begin(), node.input().end(),
        [](const std::string& input) { return absl::StartsWith(input, "^"); });
    if (!node.device().empty()) ++summary.devices[node.device()];
  }
  summary.invalid_inputs = FindInvalidInputs(graph);
  summary.ops = CountOps(graph);
  return summary;
}

}  // namespace optfarm::inspect
