// A graph from a file of any kind that holds one, ready to be run: large
// weights stay in the file where it can be mapped. It must not be written to as
// long as they are used; another file may take its name.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_LOADED_GRAPH_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_LOADED_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/authenticated_encryption.h"
#include "base/shared_bytes.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/mapped_graph.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// Of a binary graph, constants of 64 KB and more stay in its file as well: they
// are ImmutableConst nodes of the result.
// ERRORS: LoadGraphDef's, MemmappedPackage::Open's. `max_bytes` is about graphs
// that are no packages.
absl::StatusOr<LoadedGraph> LoadGraph(const std::string& path,
                                      uint64_t max_bytes = kMaxGraphBytes);

// The same from a file's bytes in memory, which are not needed any more
// afterwards. With a key, encrypted ones are decrypted with it, else with the
// environment's; a package in them is used where it was decrypted.
// ERRORS: the same; DecryptModel's.
absl::StatusOr<LoadedGraph> LoadGraphFromMemory(
    absl::string_view bytes, const std::optional<AeadKey>& key,
    const std::string& name);

// The same from bytes that were encrypted and are aligned
// (DecryptModelAligned); a package in them is used where it is.
// ERRORS: the same; InvalidArgument when they are encrypted still.
absl::StatusOr<LoadedGraph> LoadDecryptedGraph(SharedBytes plain,
                                               const std::string& name);

// Finds the package's regions for a session (SessionOptions::find_region);
// empty without a package. What is found keeps the package.
std::function<absl::StatusOr<SharedBytes>(const std::string& name)> RegionsOf(
    std::shared_ptr<const MemmappedPackage> package);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_LOADED_GRAPH_H_
