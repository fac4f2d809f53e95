// BlobStore in a folder:
//
//   ROOT/ab/cd/abcd...   the blob with that SHA-256, whole and checked
//   ROOT/staging/abcd... an upload under way, or broken off
//
// The index is in memory and is rebuilt from the folder when the store opens;
// a file's modification time is the blob's time of last use.

#ifndef OPTFARM_STORAGE_FILE_BLOB_STORE_H_
#define OPTFARM_STORAGE_FILE_BLOB_STORE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/blob_store.h"
#include "storage/file_system.h"

namespace optfarm::storage {

struct FileBlobStoreOptions {
  // Folder of the store; made when absent. Used by one store at a time.
  std::string root;
  // OWNERSHIP: the caller's; outlives the store.
  FileSystem* files = PosixFileSystem();
  // UNITS: bytes of the largest blob taken.
  int64_t max_blob_bytes = int64_t{4} << 30;
  // UNITS: bytes all blobs and uploads may take together.
  int64_t max_total_bytes = std::numeric_limits<int64_t>::max();
  // UNITS: bytes of the disk that uploads leave free, for the database.
  int64_t reserved_free_bytes = int64_t{256} << 20;
};

// ERRORS: those of the file system, naming the folder.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenFileBlobStore(
    const FileBlobStoreOptions& options);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_FILE_BLOB_STORE_H_
