#include "engine/runtime/session/step_work.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/graph/shapes/multiply_adds.h"
#include "engine/graph/tensor_proto.h"

namespace optfarm::runtime {
namespace {

constexpr size_t kKeyDigits = 24;
// Longer texts are names or data, not choices.
constexpr size_t kMostText = 32;
// No tensor that exists has more: only shapes that nothing computes do.
constexpr int64_t kMostElements = int64_t{1} << 40;

// The attribute as text where the work depends on it. Numbers with a fraction
// are ranges and factors: values, which no time depends on.
std::optional<std::string> AttrText(const tensorflow::AttrValue& value) {
  switch (value.value_case()) {
    case tensorflow::AttrValue::kType:
      return graph::DataTypeName(value.type());
    case tensorflow::AttrValue::kI:
      return absl::StrCat(value.i());
    case tensorflow::AttrValue::kB:
      return value.b() ? "true" : "false";
    case tensorflow::AttrValue::kS:
      if (value.s().size() > kMostText) return std::nullopt;
      return value.s();
    case tensorflow::AttrValue::kList: {
      std::vector<std::string> parts;
      for (const int64_t i : value.list().i()) parts.push_back(absl::StrCat(i));
      for (const int type : value.list().type()) {
        parts.push_back(
            graph::DataTypeName(static_cast<tensorflow::DataType>(type)));
      }
      return absl::StrJoin(parts, ",");
    }
    default:
      return std::nullopt;
  }
}

std::string TextOf(const tensorflow::NodeDef& def) {
  const std::map<std::string, tensorflow::AttrValue> sorted(def.attr().begin(),
                                                            def.attr().end());
  std::string text = def.op();
  for (const auto& [name, value] : sorted) {
    // Notes of the programs that wrote the graph, and names.
    if (name.starts_with("_") || name == "shared_name" || name == "container") {
      continue;
    }
    if (const auto told = AttrText(value)) {
      absl::StrAppend(&text, " ", name, "=", *told);
    }
  }
  return text;
}

// The types of the node's outputs, as far as they are known.
std::vector<tensorflow::DataType> TypesOf(const graph::Node& node) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return {};
  return graph::OutputTypes(*def, node.def())
      .value_or(std::vector<tensorflow::DataType>());
}

double MultiplyAddsOf(const graph::Node& node, graph::NodeId id,
                      const graph::ShapeMap& shapes) {
  const graph::MultiplyAddsFunction count =
      graph::RowOf(node.op()).multiply_adds;
  if (count == nullptr) return 0;
  std::vector<graph::PartialShape> inputs;
  for (const graph::Endpoint& input : node.inputs()) {
    inputs.push_back(shapes.Of(input));
  }
  return count(graph::NodeShapes(node.def(), std::move(inputs),
                                 shapes.Of({id, 0})))
      .value_or(0);
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

absl::StatusOr<StepWorks> StepWorks::Create(const graph::Graph& graph,
                                            absl::Span<const Feed> feeds) {
  graph::ShapeOptions options;
  for (const auto& [name, shape] : feeds) {
    const graph::NodeId id = graph.Find(name.node);
    if (id != graph::kNoNode) options.feeds[{id, name.port}] = shape;
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph, options));
  std::map<graph::NodeId, std::vector<tensorflow::DataType>> types;
  const auto tensor = [&](graph::Endpoint end) {
    auto [at, is_new] = types.try_emplace(end.node);
    if (is_new) at->second = TypesOf(graph.node(end.node));
    const auto port = static_cast<size_t>(end.port);
    const tensorflow::DataType type =
        port < at->second.size() ? at->second[port] : tensorflow::DT_INVALID;
    const graph::PartialShape& shape = shapes.Of(end);
    const int64_t elements = shape.elements().value_or(0);
    return Tensor{
        absl::StrCat(graph::DataTypeName(type), shape.ToString()),
        elements > kMostElements ? 0 : elements * graph::ElementBytes(type)};
  };
  StepWorks works;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (graph::IsConst(node.op())) continue;
    Node& known = works.nodes_[node.name()];
    known.text = TextOf(node.def());
    known.multiply_adds = MultiplyAddsOf(node, id, shapes);
    for (const graph::Endpoint& input : node.inputs()) {
      const graph::Node& from = graph.node(input.node);
      known.inputs.push_back(
          {graph::IsConst(from.op()) ? "" : from.name(), tensor(input)});
    }
    for (const graph::Use& use : node.uses()) {
      if (use.is_control()) continue;
      const graph::Endpoint end =
          graph.node(use.consumer).inputs()[static_cast<size_t>(use.input)];
      const auto port = static_cast<size_t>(end.port);
      if (known.outputs.size() <= port) known.outputs.resize(port + 1);
      known.outputs[port].readers.push_back(graph.node(use.consumer).name());
      known.outputs[port].tensor = tensor(end);
    }
    if (known.outputs.empty()) known.outputs.push_back({{}, tensor({id, 0})});
  }
  return works;
}

StepWork StepWorks::Of(const NodeTiming& step) const {
  StepWork work;
  work.op = step.op;
  work.nodes = step.fused_names.empty() ? std::vector<std::string>{step.name}
                                        : step.fused_names;
  std::string text = step.op;
  for (const std::string& name : work.nodes) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) continue;
    const Node& node = found->second;
    absl::StrAppend(&text, "\n", node.text);
    work.multiply_adds += node.multiply_adds;
    for (const Input& input : node.inputs) {
      if (Contains(work.nodes, input.from)) continue;
      const bool is_constant = input.from.empty();
      absl::StrAppend(&text, is_constant ? " const " : " ", input.tensor.text);
      (is_constant ? work.weight_bytes : work.input_bytes) +=
          input.tensor.bytes;
    }
    for (const Output& output : node.outputs) {
      const bool is_inner =
          !output.readers.empty() &&
          std::all_of(
              output.readers.begin(), output.readers.end(),
              [&](const auto& reader) { return Contains(work.nodes, reader); });
      if (is_inner) continue;
      absl::StrAppend(&text, " to ", output.tensor.text);
      work.output_bytes += output.tensor.bytes;
    }
  }
  work.key = Sha256Hex(text).substr(0, kKeyDigits);
  return work;
}

}  // namespace optfarm::runtime
