// BlobSource: blobs of a store that another server keeps, for reading only. It
// knows no more than where a blob of a known name and size is; whether it may
// be read, and that it stays meanwhile, is the store's matter.

#ifndef OPTFARM_STORAGE_BLOB_SOURCE_H_
#define OPTFARM_STORAGE_BLOB_SOURCE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/blob_id.h"
#include "storage/blob_store.h"
#include "storage/file_system.h"

namespace optfarm::storage {

// THREADS: all methods are safe.
class BlobSource {
 public:
  virtual ~BlobSource() = default;

  // REQUIRES: a well-formed id, with the size that the store says. ERRORS, of
  // this or of the first read: NotFound; DataLoss when the size is another one.
  virtual absl::StatusOr<std::unique_ptr<BlobReader>> Open(
      const BlobId& id) = 0;
};

// Of a FileBlobStore in the folder `root`. OWNERSHIP: `files` is the caller's
// and outlives it.
std::unique_ptr<BlobSource> MakeFileBlobSource(
    std::string root, FileSystem* files = PosixFileSystem());

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_BLOB_SOURCE_H_
