#include "client_cli/tables/graph_bytes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::client_cli {
namespace {

struct Bytes {
  int64_t nodes = 0;
  int64_t all = 0;
  int64_t names = 0;
  int64_t inputs = 0;
  int64_t values = 0;

  void Add(const Bytes& other) {
    nodes += other.nodes;
    all += other.all;
    names += other.names;
    inputs += other.inputs;
    values += other.values;
  }
};

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

Bytes BytesOf(const tensorflow::NodeDef& node) {
  Bytes bytes;
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

void AddRow(const std::string& op, const Bytes& bytes, Table* table) {
  table->AddRow(
      {Cell::Text(op), Cell::Integer(bytes.nodes), Cell::Integer(bytes.all),
       Cell::Integer(bytes.values), Cell::Integer(bytes.names),
       Cell::Integer(bytes.inputs),
       Cell::Integer(bytes.all - bytes.values - bytes.names - bytes.inputs)});
}

}  // namespace

Table GraphBytes(const tensorflow::GraphDef& graph) {
  std::map<std::string, Bytes> by_op;
  for (const tensorflow::NodeDef& node : graph.node()) {
    by_op[node.op()].Add(BytesOf(node));
  }
  if (graph.has_library()) {
    Bytes functions;
    functions.all = SizeAsField(graph.library());
    by_op["(functions)"].Add(functions);
  }
  std::vector<std::pair<std::string, Bytes>> sorted(by_op.begin(), by_op.end());
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.second.all > b.second.all; });
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"op", "OP"},
               {"nodes", "NODES", kRight},
               {"bytes", "BYTES", kRight},
               {"value_bytes", "VALUES", kRight},
               {"name_bytes", "NAMES", kRight},
               {"input_bytes", "INPUTS", kRight},
               {"other_bytes", "OP AND ATTRIBUTES", kRight}});
  Bytes all;
  for (const auto& [op, bytes] : sorted) {
    AddRow(op, bytes, &table);
    all.Add(bytes);
  }
  // Versions are what is left.
  all.all = Size(graph.ByteSizeLong());
  AddRow("all", all, &table);
  return table;
}

}  // namespace optfarm::client_cli
