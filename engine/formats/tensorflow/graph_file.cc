#include "engine/formats/tensorflow/graph_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/files/wire_reader.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_stream.h"
#include "engine/formats/tensorflow/graph_text.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace optfarm::formats {
namespace {

using tensorflow::GraphDef;

// Protobuf logs parse errors of its own accord; ours carry all that is known.
class SilenceProtobuf {
 private:
  google::protobuf::LogSilencer silencer_;
};

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

absl::Status TooLarge(absl::string_view bytes, absl::string_view name) {
  return absl::ResourceExhaustedError(absl::StrCat(name, " has ", bytes.size(),
                                                   " bytes; a graph can have ",
                                                   kMaxGraphBytes, " at most"));
}

absl::StatusOr<GraphDef> ParseEncrypted(absl::string_view bytes,
                                        absl::string_view name) {
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<AeadKey> key,
                           ModelKeyFromEnvironment());
  if (!key) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is an encrypted model; let ",
                     kModelKeyFileVariable, " name the file with its key (or ",
                     kModelKeyVariable, " hold it as hex digits)"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string plain,
                           DecryptModel(bytes, *key, name));
  if (IsEncryptedModel(plain)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is encrypted twice; decrypt it once"));
  }
  return ParseGraphDef(plain, name);
}

absl::Status FolderAsGraph(const std::string& path) {
  for (const char* file : {"saved_model.pb", "saved_model.pbtxt"}) {
    if (Exists(JoinPath(path, file))) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' ", AdviceForGraph(FileKind::kSavedModel)));
    }
  }
  absl::StatusOr<std::vector<std::string>> names = ListFolder(path);
  if (names.ok()) {
    for (const std::string& entry : *names) {
      if (entry == "checkpoint" || absl::EndsWith(entry, ".index")) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", path,
                         "' is a folder with a checkpoint; a "
                         "checkpoint ",
                         AdviceForGraph(FileKind::kCheckpoint)));
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path,
      "' is a folder without saved_model.pb; give a frozen TensorFlow graph "
      "(.pb or .pbtxt)"));
}

}  // namespace

absl::StatusOr<GraphDef> ParseBinaryGraphDef(absl::string_view bytes,
                                             absl::string_view name) {
  if (bytes.size() > kMaxGraphBytes) return TooLarge(bytes, name);
  SilenceProtobuf silence;
  return ParseBinary(bytes, name);
}

absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes,
                                       absl::string_view name) {
  if (bytes.size() > kMaxGraphBytes) return TooLarge(bytes, name);
  SilenceProtobuf silence;
  const FileKind kind = IdentifyBytes(bytes);
  if (kind == FileKind::kText) return ParseGraphText(bytes, name);
  if (kind == FileKind::kEncryptedModel) return ParseEncrypted(bytes, name);
  if (kind == FileKind::kMemoryMappedGraph) {
    OPTFARM_ASSIGN_OR_RETURN(const auto package, MemmappedPackage::FromView(
                                                     bytes, std::string(name)));
    return package->GraphWithConstants();
  }
  const std::string advice = AdviceForGraph(kind);
  if (!advice.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", advice));
  }
  return ParseBinary(bytes, name);
}

absl::StatusOr<GraphDef> LoadGraphDef(const std::string& path,
                                      uint64_t max_bytes) {
  if (IsFolder(path)) return FolderAsGraph(path);
  if (!Exists(path) && Exists(absl::StrCat(path, ".index"))) {
    return absl::NotFoundError(
        absl::StrCat("'", path, "' is the prefix of a checkpoint, which ",
                     AdviceForGraph(FileKind::kCheckpoint)));
  }
  if (std::optional<GraphDef> graph = ReadGraphStream(path, max_bytes)) {
    return *std::move(graph);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, max_bytes));
  return ParseGraphDef(bytes, absl::StrCat("'", path, "'"));
}

namespace {

// ERRORS: ResourceExhausted when the graph is too large for one message.
absl::StatusOr<size_t> BinarySize(const GraphDef& graph) {
  const size_t size = graph.ByteSizeLong();
  if (size <= kMaxGraphBytes) return size;
  return absl::ResourceExhaustedError(
      absl::StrCat("The graph has ", size, " bytes; a graph file can have ",
                   kMaxGraphBytes, " at most"));
}

}  // namespace

absl::StatusOr<std::string> SerializeGraphDef(const GraphDef& graph,
                                              GraphEncoding encoding) {
  if (encoding == GraphEncoding::kText) return PrintGraphText(graph);
  std::string bytes;
  OPTFARM_ASSIGN_OR_RETURN(const size_t size, BinarySize(graph));
  bytes.reserve(size);
  google::protobuf::io::StringOutputStream stream(&bytes);
  WriteGraph(graph, &stream);
  return bytes;
}

absl::Status SaveGraphDef(const GraphDef& graph, const std::string& path,
                          GraphEncoding encoding) {
  if (encoding == GraphEncoding::kText) {
    OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                             SerializeGraphDef(graph, encoding));
    return WriteFileAtomically(path, bytes);
  }
  OPTFARM_RETURN_IF_ERROR(BinarySize(graph).status());
  OPTFARM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  OPTFARM_RETURN_IF_ERROR(WriteGraph(graph, &file));
  return file.Commit();
}

}  // namespace optfarm::formats
