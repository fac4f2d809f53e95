#include "engine/graph/model_interface.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

void SetStrings(absl::string_view name, const std::vector<std::string>& values,
                NodeDef* node) {
  AttrValue::ListValue* list =
      (*node->mutable_attr())[std::string(name)].mutable_list();
  list->Clear();
  for (const std::string& value : values) list->add_s(value);
}

std::vector<std::string> Strings(const NodeDef& node, absl::string_view name) {
  const AttrValue* value = FindAttr(node, name);
  if (value == nullptr) return {};
  return {value->list().s().begin(), value->list().s().end()};
}

void Declare(absl::string_view position_attr, absl::string_view format,
             int position, absl::string_view tensor_name,
             const std::vector<std::string>& dim_names, NodeDef* node) {
  SetInt(node, position_attr, position);
  SetString(node, kModelFormatAttr, format);
  std::vector<std::string> names = Strings(*node, kTensorNamesAttr);
  if (names.empty()) names.emplace_back();
  names[0] = std::string(tensor_name);
  SetStrings(kTensorNamesAttr, names, node);
  const bool any_named =
      std::any_of(dim_names.begin(), dim_names.end(),
                  [](const std::string& name) { return !name.empty(); });
  if (any_named) SetStrings(kDimNamesAttr, dim_names, node);
}

// Those with the attribute, in the order it says.
std::vector<ModelTensor> Declared(const Graph& graph, absl::string_view attr) {
  std::vector<std::pair<int64_t, ModelTensor>> found;
  for (const NodeId id : graph.Ids()) {
    const NodeDef& def = graph.node(id).def();
    const AttrValue* position = FindAttr(def, attr);
    if (position == nullptr) continue;
    found.push_back({position->i(),
                     {TensorNameInFile(graph, {id, 0}),
                      {id, 0},
                      Strings(def, kDimNamesAttr)}});
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ModelTensor> tensors;
  for (auto& [position, tensor] : found) tensors.push_back(std::move(tensor));
  return tensors;
}

// By the file's names; kNoNode where there is none.
Endpoint FindInFile(const Graph& graph, absl::string_view name) {
  for (const NodeId id : graph.Ids()) {
    const AttrValue* names = FindAttr(graph.node(id).def(), kTensorNamesAttr);
    if (names == nullptr) continue;
    for (int port = 0; port < names->list().s_size(); ++port) {
      if (names->list().s(port) == name) return {id, port};
    }
  }
  return {};
}

}  // namespace

ModelInterface ReadModelInterface(const Graph& graph) {
  ModelInterface interface;
  interface.inputs = Declared(graph, kModelInputAttr);
  interface.outputs = Declared(graph, kModelOutputAttr);
  for (const auto* tensors : {&interface.inputs, &interface.outputs}) {
    if (tensors->empty() || !interface.format.empty()) continue;
    const AttrValue* format =
        graph.node(tensors->front().tensor.node).FindAttr(kModelFormatAttr);
    if (format != nullptr) interface.format = format->s();
  }
  return interface;
}

void DeclareInput(absl::string_view format, int position,
                  absl::string_view tensor_name,
                  const std::vector<std::string>& dim_names, NodeDef* node) {
  Declare(kModelInputAttr, format, position, tensor_name, dim_names, node);
}

void DeclareOutput(absl::string_view format, int position,
                   absl::string_view tensor_name,
                   const std::vector<std::string>& dim_names, NodeDef* node) {
  Declare(kModelOutputAttr, format, position, tensor_name, dim_names, node);
}

void SetTensorName(absl::string_view tensor_name, int port, NodeDef* node) {
  if (port < 0 || (port == 0 && tensor_name == node->name())) return;
  std::vector<std::string> names = Strings(*node, kTensorNamesAttr);
  if (names.size() <= static_cast<size_t>(port)) {
    names.resize(static_cast<size_t>(port) + 1);
  }
  names[static_cast<size_t>(port)] = std::string(tensor_name);
  SetStrings(kTensorNamesAttr, names, node);
}

std::string NodeNameOf(absl::string_view tensor_name) {
  std::string name;
  for (const char c : absl::StripSuffix(tensor_name, ":0")) {
    const auto u = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(u) || c == '.') {
      name += c;
    } else if (!name.empty()) {
      // The first character must be one of the above.
      name += c == '/' || c == '-' ? c : '_';
    }
  }
  return name.empty() ? "unnamed" : name;
}

std::string TensorNameInFile(const Graph& graph, Endpoint tensor) {
  const AttrValue* names = graph.node(tensor.node).FindAttr(kTensorNamesAttr);
  if (names != nullptr && tensor.port >= 0 &&
      tensor.port < names->list().s_size() &&
      !names->list().s(tensor.port).empty()) {
    return names->list().s(tensor.port);
  }
  return graph.NameOf(tensor);
}

absl::StatusOr<Endpoint> ResolveTensor(const Graph& graph,
                                       absl::string_view name) {
  const Endpoint in_file = FindInFile(graph, name);
  if (in_file.node != kNoNode) return in_file;
  // Names of files may have characters that mean something to TensorFlow.
  const NodeId exact = graph.Find(name);
  if (exact != kNoNode) return Endpoint{exact, 0};
  OPTFARM_ASSIGN_OR_RETURN(const TensorName parsed, ParseTensorName(name));
  if (parsed.is_control()) {
    return absl::InvalidArgumentError(
        "'" + std::string(name) + "' is a control edge; a tensor is needed");
  }
  return graph.Resolve(parsed);
}

}  // namespace optfarm::graph
