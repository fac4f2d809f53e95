// Sorted tables, the files that checkpoints are made of: blocks of keys and
// values in the order of the keys, an index of the blocks, a footer. The layout
// is LevelDB's without filters.
//
// Files are not trusted: every size is checked against the file before memory
// is taken, every block's CRC is compared, keys must rise.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_TABLE_FILE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_TABLE_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/files/random_access_file.h"

namespace optfarm::formats {

// UNITS: bytes, uncompressed. A V1 checkpoint keeps a whole tensor in one
// block, and a message of protobuf ends at 2 GiB.
inline constexpr uint64_t kMaxTableBlockBytes = (uint64_t{1} << 31) + 4096;
// UNITS: bytes. Keys are names of tensors.
inline constexpr uint64_t kMaxTableKeyBytes = 1 << 14;

// THREADS: const methods may be called from several threads.
class TableFile {
 public:
  // Reads footer and index; blocks are read when asked for.
  // ERRORS: DataLoss naming the file and what is wrong where; the file's.
  static absl::StatusOr<std::unique_ptr<TableFile>> Open(
      std::unique_ptr<RandomAccessFile> file);

  // Receives one entry. An error ends the walk. OWNERSHIP: both texts are
  // valid during the call.
  using Visitor =
      std::function<absl::Status(absl::string_view key, absl::string_view)>;
  // Visits all entries in the order of their keys.
  // ERRORS: DataLoss for a damaged block; the visitor's.
  absl::Status ForEach(const Visitor& visit) const;

  // The value of a key; nullopt when the table does not have it. Reads one
  // block. ERRORS: DataLoss for a damaged block.
  absl::StatusOr<std::optional<std::string>> Find(absl::string_view key) const;

  // The path, for messages.
  const std::string& name() const { return file_->name(); }

 private:
  // Where a block is in the file.
  struct Handle {
    uint64_t offset = 0;
    // UNITS: bytes, without the trailer of 5.
    uint64_t size = 0;
  };
  struct IndexEntry {
    // No key of the block is above.
    std::string last_key;
    Handle block;
  };

  explicit TableFile(std::unique_ptr<RandomAccessFile> file)
      : file_(std::move(file)) {}

  absl::Status ReadFooterAndIndex();
  absl::StatusOr<Handle> ParseHandle(absl::string_view* bytes,
                                     absl::string_view what) const;
  absl::StatusOr<std::string> ReadBlock(const Handle& handle) const;
  absl::Status VisitBlock(const Handle& handle, const Visitor& visit) const;
  absl::Status Damaged(const Handle& handle, absl::string_view what) const;

  std::unique_ptr<RandomAccessFile> file_;
  std::vector<IndexEntry> index_;
};

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_TABLE_FILE_H_
