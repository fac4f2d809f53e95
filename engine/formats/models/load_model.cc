#include "engine/formats/models/load_model.h"

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/shared_bytes.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/reader.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/formats/tflite/reader.h"

namespace optfarm::formats {
namespace {

// Of a file that could not be read as a TensorFlow graph: one without any mark
// whose name says ONNX or TensorFlow Lite was one of these. `path` is its name.
absl::Status WithFormatOfName(const absl::Status& status,
                              absl::string_view bytes,
                              const std::string& path) {
  if (status.code() != absl::StatusCode::kInvalidArgument ||
      IdentifyBytes(bytes) != FileKind::kUnknown) {
    return status;
  }
  const bool is_onnx = absl::EndsWithIgnoreCase(path, ".onnx");
  if (!is_onnx && !absl::EndsWithIgnoreCase(path, ".tflite")) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "' is not ", is_onnx ? "an ONNX" : "a TensorFlow Lite",
      " model that can be read: its bytes are cut off, damaged or of another "
      "format; was it copied completely?"));
}

// A graph of a format other than TensorFlow's; nullopt for what LoadGraph is
// to read, or to refuse with advice.
absl::StatusOr<std::optional<tensorflow::GraphDef>> ReadOtherFormat(
    absl::string_view bytes, const std::string& name,
    const std::string& folder) {
  switch (IdentifyBytes(bytes)) {
    case FileKind::kOnnx: {
      OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                               ReadOnnx(bytes, name, folder));
      return std::optional(std::move(def));
    }
    case FileKind::kTfLite: {
      OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                               ReadTflite(bytes, name));
      return std::optional(std::move(def));
    }
    default:
      return std::nullopt;
  }
}

// The key for encrypted bytes; nullopt when there is none, which LoadGraph
// explains.
absl::StatusOr<std::optional<AeadKey>> KeyFor(
    absl::string_view bytes, const std::optional<AeadKey>& key) {
  if (!IsEncryptedModel(bytes)) return std::nullopt;
  if (key.has_value()) return key;
  return ModelKeyFromEnvironment();
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

absl::StatusOr<LoadedGraph> LoadModelFromMemory(
    absl::string_view bytes, const std::optional<AeadKey>& key,
    const std::string& name, const std::string& folder) {
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<AeadKey> used,
                           KeyFor(bytes, key));
  SharedBytes plain;
  if (used.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(plain, DecryptModelAligned(bytes, *used, name));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      std::optional<tensorflow::GraphDef> def,
      ReadOtherFormat(used.has_value() ? plain.bytes : bytes, name, folder));
  if (def.has_value()) return LoadedGraph{*std::move(def), nullptr};
  if (used.has_value()) return LoadDecryptedGraph(std::move(plain), name);
  return LoadGraphFromMemory(bytes, key, name);
}

absl::StatusOr<LoadedGraph> LoadModel(const std::string& path,
                                      uint64_t max_bytes) {
  // Folders and what is not there get LoadGraph's advice.
  const auto mapped = MappedFile::Open(path);
  if (mapped.ok() && (*mapped)->bytes().size() <= max_bytes) {
    const absl::string_view bytes = (*mapped)->bytes();
    const std::string name = absl::StrCat("'", path, "'");
    if (IsEncryptedModel(bytes)) {
      return LoadModelFromMemory(bytes, std::nullopt, name, FolderOf(path));
    }
    OPTFARM_ASSIGN_OR_RETURN(std::optional<tensorflow::GraphDef> def,
                             ReadOtherFormat(bytes, name, FolderOf(path)));
    if (def.has_value()) return LoadedGraph{*std::move(def), nullptr};
    absl::StatusOr<LoadedGraph> graph = LoadGraph(path, max_bytes);
    if (graph.ok()) return graph;
    return WithFormatOfName(graph.status(), bytes, path);
  }
  return LoadGraph(path, max_bytes);
}

absl::StatusOr<tensorflow::GraphDef> LoadModelDef(const std::string& path,
                                                  uint64_t max_bytes) {
  const auto mapped = MappedFile::Open(path);
  if (!mapped.ok() || (*mapped)->bytes().size() > max_bytes) {
    return LoadGraphDef(path, max_bytes);
  }
  const absl::string_view bytes = (*mapped)->bytes();
  const std::string name = absl::StrCat("'", path, "'");
  OPTFARM_ASSIGN_OR_RETURN(const std::optional<AeadKey> key,
                           KeyFor(bytes, std::nullopt));
  std::string plain;
  if (key.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(plain, DecryptModel(bytes, *key, name));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      std::optional<tensorflow::GraphDef> def,
      ReadOtherFormat(key.has_value() ? absl::string_view(plain) : bytes, name,
                      FolderOf(path)));
  if (def.has_value()) return *std::move(def);
  if (key.has_value() && !IsEncryptedModel(plain)) {
    return ParseGraphDef(plain, name);
  }
  absl::StatusOr<tensorflow::GraphDef> graph = LoadGraphDef(path, max_bytes);
  if (graph.ok()) return graph;
  return WithFormatOfName(graph.status(), bytes, path);
}

}  // namespace optfarm::formats
