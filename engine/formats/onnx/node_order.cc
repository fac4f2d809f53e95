#include "engine/formats/onnx/node_order.h"

#include <functional>
#include <queue>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::NodeProto;
using Names = absl::flat_hash_set<absl::string_view>;

void AddNamesReadBy(const NodeProto& node, Names* names);

// What a subgraph reads of the graph around it.
void AddNamesReadBy(const GraphProto& graph, Names* names) {
  Names read;
  for (const NodeProto& node : graph.node()) AddNamesReadBy(node, &read);
  for (const auto& output : graph.output()) read.insert(output.name());
  for (const auto& input : graph.input()) read.erase(input.name());
  for (const auto& tensor : graph.initializer()) read.erase(tensor.name());
  for (const NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) read.erase(output);
  }
  names->insert(read.begin(), read.end());
}

void AddNamesReadBy(const NodeProto& node, Names* names) {
  names->insert(node.input().begin(), node.input().end());
  for (const AttributeProto& attr : node.attribute()) {
    if (attr.has_g()) AddNamesReadBy(attr.g(), names);
  }
}

}  // namespace

std::vector<const NodeProto*> NodesInOrder(
    const google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
  absl::flat_hash_map<absl::string_view, int> makers;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (!output.empty()) makers.emplace(output, i);
    }
  }
  std::vector<std::vector<int>> readers(static_cast<size_t>(nodes.size()));
  std::vector<int> missing(static_cast<size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    Names names;
    AddNamesReadBy(nodes[i], &names);
    for (const absl::string_view name : names) {
      const auto maker = makers.find(name);
      if (maker == makers.end()) continue;
      readers[static_cast<size_t>(maker->second)].push_back(i);
      ++missing[static_cast<size_t>(i)];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    if (missing[static_cast<size_t>(i)] == 0) ready.push(i);
  }
  std::vector<const NodeProto*> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(&nodes[next]);
    for (const int reader : readers[static_cast<size_t>(next)]) {
      if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
    }
  }
  for (int i = 0; i < nodes.size(); ++i) {
    if (missing[static_cast<size_t>(i)] != 0) order.push_back(&nodes[i]);
  }
  return order;
}

}  // namespace optfarm::formats
