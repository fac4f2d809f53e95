#include "engine/inspect/graph_bytes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

void Add(const OpBytes& part, OpBytes* sum) {
  sum->nodes += part.nodes;
  sum->all += part.all;
  sum->names += part.names;
  sum->inputs += part.inputs;
  sum->values += part.values;
}

int64_t Size(size_t bytes) { return static_cast<int64_t>(bytes); }

// A message as a field of another: its tag and its length come before it.
template <typename Message>
int64_t SizeAsField(const Message& message) {
  const size_t bytes = message.ByteSizeLong();
  int64_t size = Size(bytes) + 2;
  for (size_t left = bytes >> 7; left > 0; left >>= 7) ++size;
  return size;
}

// Without its type and shape.
int64_t SizeOfElements(const tensorflow::TensorProto& tensor) {
  tensorflow::TensorProto header;
  header.set_dtype(tensor.dtype());
  if (tensor.has_tensor_shape()) {
    *header.mutable_tensor_shape() = tensor.tensor_shape();
  }
  return Size(tensor.ByteSizeLong()) - Size(header.ByteSizeLong());
}

OpBytes BytesOf(const tensorflow::NodeDef& node) {
  OpBytes bytes;
  bytes.nodes = 1;
  bytes.all = SizeAsField(node);
  bytes.names = Size(node.name().size());
  for (const std::string& input : node.input()) {
    // Its tag and its length.
    bytes.inputs += Size(input.size()) + 2;
  }
  for (const auto& [name, value] : node.attr()) {
    if (value.has_tensor()) bytes.values += SizeOfElements(value.tensor());
  }
  return bytes;
}

}  // namespace

std::vector<OpBytes> CountGraphBytes(const tensorflow::GraphDef& graph) {
  std::map<std::string, OpBytes> by_op;
  for (const tensorflow::NodeDef& node : graph.node()) {
    Add(BytesOf(node), &by_op[node.op()]);
  }
  if (graph.has_library()) {
    by_op["(functions)"].all += SizeAsField(graph.library());
  }
  std::vector<OpBytes> counts;
  OpBytes all;
  for (auto& [op, bytes] : by_op) {
    Add(bytes, &all);
    bytes.op = op;
    counts.push_back(std::move(bytes));
  }
  std::stable_sort(
      counts.begin(), counts.end(),
      [](const OpBytes& a, const OpBytes& b) { return a.all > b.all; });
  all.op = "all";
  // Versions are what is left.
  all.all = Size(graph.ByteSizeLong());
  counts.push_back(std::move(all));
  return counts;
}

}  // namespace optfarm::inspect
