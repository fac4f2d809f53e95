#include "engine/formats/loaded_graph.h"

#include <utility>

#include "base/files.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/file_kind.h"

namespace optfarm::formats {

absl::StatusOr<LoadedGraph> LoadGraph(const std::string& path,
                                      uint64_t max_bytes) {
  LoadedGraph loaded;
  // Folders and what is not there get LoadGraphDef's advice.
  const auto mapped = MappedFile::Open(path);
  if (mapped.ok() &&
      IdentifyBytes((*mapped)->bytes()) == FileKind::kMemoryMappedGraph) {
    OPTFARM_ASSIGN_OR_RETURN(loaded.package, MemmappedPackage::Open(path));
    OPTFARM_ASSIGN_OR_RETURN(loaded.def, loaded.package->Graph());
    return loaded;
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
    return SharedBytes{bytes, package};
  };
}

}  // namespace optfarm::formats
