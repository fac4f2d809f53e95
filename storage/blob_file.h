// The file of one blob, read and hashed through the file system seam.

#ifndef OPTFARM_STORAGE_BLOB_FILE_H_
#define OPTFARM_STORAGE_BLOB_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/blob_store.h"
#include "storage/file_system.h"

namespace optfarm::storage {

// The folder in which a FileBlobStore in the folder `root` keeps the blob, as a
// file that has its name.
std::string BlobFolder(absl::string_view root, absl::string_view sha256);

// SHA-256 of the file's first `size_bytes` bytes, or of all if it has fewer, as
// hex. ERRORS: those of the file system.
absl::StatusOr<std::string> HashBlobFile(FileSystem& files,
                                         const std::string& path,
                                         int64_t size_bytes);

// A reader of the file as the blob `id`. ERRORS: those of the file system.
absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlobFile(
    FileSystem& files, const std::string& path, const BlobId& id);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_BLOB_FILE_H_
