// Which engine keeps the blobs, as the server's flags say.

#ifndef OPTFARM_SERVER_UPKEEP_BLOB_ENGINE_H_
#define OPTFARM_SERVER_UPKEEP_BLOB_ENGINE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/upkeep/data_dir.h"
#include "storage/blob_source.h"
#include "storage/blob_store.h"

namespace optfarm::server {

struct BlobEngineOptions {
  // file:FOLDER or s3://BUCKET/PREFIX; empty: DataDir::blobs().
  std::string blobs;
  // Of s3:// only; see storage/s3/s3_location.h.
  std::string s3_endpoint;
  std::string s3_region;
  bool s3_path_style = false;
  std::string s3_credentials_file;
  // Where workers and agents reach the store; empty: as s3_endpoint; "none":
  // they do not.
  std::string s3_download_endpoint;
  // As S3BlobStoreOptions'.
  std::string term;
};

// UNITS: bytes; as those of ServerOptions.
struct BlobLimits {
  int64_t max_blob_bytes = int64_t{4} << 30;
  int64_t max_store_bytes = std::numeric_limits<int64_t>::max();
  int64_t reserved_free_bytes = int64_t{256} << 20;
};

// Opens the store; a bucket has to answer.
// ERRORS: InvalidArgument for flags that do not fit; those of the engines.
absl::StatusOr<std::unique_ptr<storage::BlobStore>> OpenBlobs(
    const BlobEngineOptions& options, const BlobLimits& limits,
    const DataDir& data_dir);

// For reading what another server keeps there, without waiting long for a store
// that does not answer. REQUIRES: options.blobs names a place. ERRORS: as
// above; the bucket is not asked.
absl::StatusOr<std::unique_ptr<storage::BlobSource>> OpenBlobSource(
    const BlobEngineOptions& options);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_BLOB_ENGINE_H_
