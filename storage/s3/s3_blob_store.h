// BlobStore in a bucket of an S3-compatible object store:
//
//   s3://BUCKET/PREFIX/blobs/ab/abcd...  the blob with that SHA-256, whole and
//                                        checked
//   FOLDER/index.db                      see s3_index.h
//   FOLDER/staging/                      see s3_staging.h
//
// Nothing rests on conditional writes: two uploads of one key write the same
// bytes. The bucket below the prefix belongs to one store at a time; several
// take turns with terms.

#ifndef OPTFARM_STORAGE_S3_S3_BLOB_STORE_H_
#define OPTFARM_STORAGE_S3_S3_BLOB_STORE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/blob_store.h"
#include "storage/file_system.h"
#include "storage/s3/s3_client.h"

namespace optfarm::storage {

struct S3BlobStoreOptions {
  S3ClientOptions client;
  // Of this machine; made when absent. Used by one store at a time.
  std::string folder;
  // OWNERSHIP: the caller's; outlives the store.
  FileSystem* files = PosixFileSystem();
  // With several servers: a text that is another each time one of them begins
  // to lead. What an index of another term says is out of date, so the bucket
  // is listed anew.
  std::string term;
  // UNITS: bytes; as those of FileBlobStoreOptions.
  int64_t max_blob_bytes = int64_t{4} << 30;
  int64_t max_total_bytes = std::numeric_limits<int64_t>::max();
  int64_t reserved_free_bytes = int64_t{256} << 20;
  // UNITS: bytes. Blobs up to this size are sent in one piece, larger ones in
  // parts of it. S3 takes no smaller parts than 5 MiB.
  int64_t part_bytes = int64_t{8} << 20;
  // Where others reach the store, http[s]://HOST[:PORT]; empty: they do not,
  // and all bytes pass through the server.
  std::string download_endpoint;
  // UNITS: bytes that a reader fetches when its caller reads on and on.
  int64_t read_ahead_bytes = int64_t{4} << 20;
};

// Looks for the bucket, and lists its blobs when the index is not there.
// ERRORS: those of S3Client and of the file system, naming the bucket.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenS3BlobStore(
    const S3BlobStoreOptions& options);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_BLOB_STORE_H_
