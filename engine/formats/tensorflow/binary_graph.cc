#include "engine/formats/tensorflow/binary_graph.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/files/wire_reader.h"

namespace optfarm::formats {
namespace {

using tensorflow::GraphDef;

// What a GraphDef's outermost fields look like before anything is parsed.
struct Outline {
  int64_t nodes = 0;
  bool at_end = false;
  bool truncated = false;
  uint64_t missing_bytes = 0;
  size_t position = 0;
  // The first field is one that a GraphDef has, in its wire type.
  bool starts_as_graph = false;
};

Outline OutlineOf(absl::string_view bytes) {
  Outline outline;
  WireReader reader(bytes);
  bool first = true;
  while (const std::optional<WireField> field = reader.Next()) {
    if (field->number == 1 && field->is_bytes) ++outline.nodes;
    if (first) {
      outline.starts_as_graph =
          field->number <= 4 && field->is_bytes == (field->number != 3);
      first = false;
    }
  }
  outline.at_end = reader.AtEnd();
  outline.truncated = reader.truncated();
  outline.missing_bytes = reader.missing_bytes();
  outline.position = reader.position();
  return outline;
}

absl::Status NotAGraph(absl::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      name,
      " is not a TensorFlow graph: its bytes are not a GraphDef protobuf "
      "message. Give a frozen graph (.pb or .pbtxt)"));
}

// The message for a graph that is whole outside but damaged inside.
absl::Status DamagedNode(absl::string_view bytes, absl::string_view name) {
  WireReader reader(bytes);
  for (int64_t number = 0;;) {
    const size_t position = reader.position();
    const std::optional<WireField> field = reader.Next();
    if (!field.has_value()) break;
    if (field->number != 1 || !field->is_bytes) continue;
    tensorflow::NodeDef node;
    if (!node.ParseFromArray(field->bytes.data(),
                             static_cast<int>(field->bytes.size()))) {
      if (number == 0) return NotAGraph(name);
      return absl::InvalidArgumentError(absl::StrCat(
          name, " is damaged: node number ", number, " (at byte ", position,
          ") does not parse; was the file copied as text?"));
    }
    ++number;
  }
  return NotAGraph(name);
}

// A message of other type can parse as a GraphDef by luck; its "nodes" then
// have no op.
bool IsPlausible(const GraphDef& graph) {
  return std::any_of(
      graph.node().begin(), graph.node().end(),
      [](const tensorflow::NodeDef& node) { return !node.op().empty(); });
}

absl::StatusOr<GraphDef> ParseBinary(absl::string_view bytes,
                                     absl::string_view name) {
  const Outline outline = OutlineOf(bytes);
  if (outline.nodes > kMaxGraphNodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " has ", outline.nodes, " nodes; at most ",
                     kMaxGraphNodes, " are taken"));
  }
  if (!outline.at_end) {
    const bool has_nodes = outline.nodes > 0 && outline.starts_as_graph;
    const bool begins_a_node =
        outline.truncated && !bytes.empty() && bytes[0] == '\n';
    if (outline.truncated && (has_nodes || begins_a_node)) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, " is truncated: after ", outline.nodes,
          " whole nodes the file ends inside the next field at byte ",
          outline.position,
          outline.missing_bytes > 0
              ? absl::StrCat(" (at least ", outline.missing_bytes,
                             " bytes are missing)")
              : "",
          "; copy or download it again"));
    }
    if (!has_nodes) return NotAGraph(name);
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is damaged: after ", outline.nodes, " nodes, at byte ",
        outline.position, ", the bytes are no protobuf field"));
  }
  GraphDef graph;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DamagedNode(bytes, name);
  }
  if (!IsPlausible(graph)) return NotAGraph(name);
  return graph;
}

}  // namespace

absl::Status CheckGraphSize(absl::string_view bytes, absl::string_view name) {
  if (bytes.size() <= kMaxGraphBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(name, " has ", bytes.size(),
                                                   " bytes; a graph can have ",
                                                   kMaxGraphBytes, " at most"));
}

absl::StatusOr<GraphDef> ParseBinaryGraphDef(absl::string_view bytes,
                                             absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(CheckGraphSize(bytes, name));
  // Protobuf logs parse errors of its own accord; ours carry all that is known.
  const google::protobuf::LogSilencer silence;
  return ParseBinary(bytes, name);
}

}  // namespace optfarm::formats
