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
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_stream.h"
#include "engine/formats/tensorflow/graph_text.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace optfarm::formats {
namespace {

using tensorflow::GraphDef;

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

absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes,
                                       absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(CheckGraphSize(bytes, name));
  const google::protobuf::LogSilencer silence;
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
  return ParseBinaryGraphDef(bytes, name);
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
