#include "engine/formats/tensorflow/loaded_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/file_kind.h"

namespace optfarm::formats {

namespace {

bool IsPackage(absl::string_view bytes) {
  return IdentifyBytes(bytes) == FileKind::kMemoryMappedGraph;
}

absl::StatusOr<LoadedGraph> FromPackage(
    absl::StatusOr<std::shared_ptr<const MemmappedPackage>> package) {
  LoadedGraph loaded;
  OPTFARM_ASSIGN_OR_RETURN(loaded.package, std::move(package));
  OPTFARM_ASSIGN_OR_RETURN(loaded.def, loaded.package->Graph());
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedGraph> LoadDecryptedGraph(SharedBytes plain,
                                               const std::string& name) {
  if (IsPackage(plain.bytes)) {
    return FromPackage(MemmappedPackage::FromShared(std::move(plain), name));
  }
  if (IsEncryptedModel(plain.bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is encrypted twice; decrypt it once"));
  }
  LoadedGraph loaded;
  OPTFARM_ASSIGN_OR_RETURN(loaded.def, ParseGraphDef(plain.bytes, name));
  return loaded;
}

absl::StatusOr<LoadedGraph> LoadGraphFromMemory(
    absl::string_view bytes, const std::optional<AeadKey>& key,
    const std::string& name) {
  LoadedGraph loaded;
  if (!IsEncryptedModel(bytes)) {
    if (IsPackage(bytes)) {
      return FromPackage(MemmappedPackage::FromBytes(bytes, name));
    }
    OPTFARM_ASSIGN_OR_RETURN(loaded.def, ParseGraphDef(bytes, name));
    return loaded;
  }
  std::optional<AeadKey> used = key;
  if (!used.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(used, ModelKeyFromEnvironment());
  }
  if (used.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(SharedBytes plain,
                             DecryptModelAligned(bytes, *used, name));
    return LoadDecryptedGraph(std::move(plain), name);
  }
  // Says how to name the key.
  OPTFARM_ASSIGN_OR_RETURN(loaded.def, ParseGraphDef(bytes, name));
  return loaded;
}

absl::StatusOr<LoadedGraph> LoadGraph(const std::string& path,
                                      uint64_t max_bytes) {
  LoadedGraph loaded;
  // Folders and what is not there get LoadGraphDef's advice.
  auto mapped = MappedFile::Open(path);
  if (mapped.ok() && IsPackage((*mapped)->bytes())) {
    absl::StatusOr<LoadedGraph> package =
        FromPackage(MemmappedPackage::FromFile(*mapped, path));
    (*mapped)->LetPagesGo();
    return package;
  }
  if (mapped.ok() && (*mapped)->bytes().size() <= max_bytes) {
    if (IsEncryptedModel((*mapped)->bytes())) {
      return LoadGraphFromMemory((*mapped)->bytes(), std::nullopt,
                                 absl::StrCat("'", path, "'"));
    }
    if (std::optional<LoadedGraph> graph = ReadMappedGraph(*mapped, path)) {
      (*mapped)->LetPagesGo();
      return *std::move(graph);
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(loaded.def, LoadGraphDef(path, max_bytes));
  return loaded;
}

std::function<absl::StatusOr<SharedBytes>(const std::string& name)> RegionsOf(
    std::shared_ptr<const MemmappedPackage> package) {
  if (package == nullptr) return nullptr;
  return [package = std::move(package)](
             const std::string& name) -> absl::StatusOr<SharedBytes> {
    OPTFARM_ASSIGN_OR_RETURN(const absl::string_view bytes,
                             package->Find(name));
    return SharedBytes{bytes, package, package->mapped_file()};
  };
}

}  // namespace optfarm::formats
