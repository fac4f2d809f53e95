// Memory-mapped packages: a graph whose large constants lie aligned in the same
// file, to be used there without a copy. A node of op ImmutableConst names the
// region of the file that has its value.
//
//   [region, zeros]* graph directory offset-of-directory
//
// Files are not trusted: every region is checked to lie in the file and before
// the next one.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_MEMMAPPED_PACKAGE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_MEMMAPPED_PACKAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "base/shared_bytes.h"
#include "engine/formats/tensorflow/mapped_region.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// THREADS: const methods may be called from several threads.
class MemmappedPackage {
 public:
  // Maps a file. ERRORS: DataLoss saying what is damaged; the file's.
  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> Open(
      const std::string& path);
  // The same over a file that is mapped already.
  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> FromFile(
      std::shared_ptr<const MappedFile> file, const std::string& path);
  // Parts of a mapped file that is no package, by the names that nodes give
  // them; they begin at any byte. There is no Graph() in it.
  static std::shared_ptr<const MemmappedPackage> OfParts(
      std::shared_ptr<const MappedFile> file, const std::string& path,
      absl::flat_hash_map<std::string, absl::string_view> parts);
  // The same over bytes in memory, which are copied to where they are aligned;
  // `name` stands in messages.
  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> FromBytes(
      absl::string_view bytes, const std::string& name);
  // The same where they are, kept as long as the package.
  // REQUIRES: they begin at a multiple of kRegionAlignment.
  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> FromShared(
      SharedBytes bytes, const std::string& name);
  // The same where they are. OWNERSHIP: the bytes outlive the package.
  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> FromView(
      absl::string_view bytes, const std::string& name);

  // A region's bytes; its name as nodes give it, prefix included.
  // ERRORS: NotFound with the nearest names. Other files are never opened.
  // OWNERSHIP: valid as long as the package.
  absl::StatusOr<absl::string_view> Find(absl::string_view region) const;

  // All its bytes where they are those of a mapped file; else empty.
  absl::string_view mapped_file() const {
    return is_mapped_ ? bytes_ : absl::string_view();
  }

  // The graph as it is stored, with its ImmutableConst nodes.
  // ERRORS: DataLoss when it is missing or does not parse.
  absl::StatusOr<tensorflow::GraphDef> Graph() const;
  // An ordinary graph: every ImmutableConst is a Const again.
  // ERRORS: Graph's; DataLoss naming a node whose region does not fit it.
  absl::StatusOr<tensorflow::GraphDef> GraphWithConstants() const;

 private:
  MemmappedPackage(std::string name, absl::string_view bytes,
                   std::shared_ptr<const void> owner)
      : name_(std::move(name)), bytes_(bytes), owner_(std::move(owner)) {}

  static absl::StatusOr<std::shared_ptr<const MemmappedPackage>> Parse(
      std::unique_ptr<MemmappedPackage> package);
  absl::Status ReadDirectory();
  absl::Status Corrupted(absl::string_view what) const;

  std::string name_;
  absl::string_view bytes_;
  std::shared_ptr<const void> owner_;
  bool is_mapped_ = false;
  absl::flat_hash_map<std::string, absl::string_view> regions_;
};

struct MemmappedBytes {
  std::string bytes;
  // Constants that became ImmutableConst.
  int converted_nodes = 0;
};

// Writes a package's bytes. Constants of fixed-size elements with at least
// `min_bytes` bytes become regions. Takes the graph, so that its tensors are
// not held twice. UNITS: bytes.
// ERRORS: InvalidArgument for min_bytes < 1 or a constant that is malformed;
// ResourceExhausted when what stays in the graph is too large for a message.
absl::StatusOr<MemmappedBytes> SerializeMemmapped(tensorflow::GraphDef graph,
                                                  int64_t min_bytes);

// Writes the same into a file, atomically and a tensor at a time. Returns how
// many constants became ImmutableConst. ERRORS: those and the file's.
absl::StatusOr<int> SaveMemmapped(tensorflow::GraphDef graph, int64_t min_bytes,
                                  const std::string& path);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_MEMMAPPED_PACKAGE_H_
