// BlobSource of an S3BlobStore, which another server keeps.

#ifndef OPTFARM_STORAGE_S3_S3_BLOB_SOURCE_H_
#define OPTFARM_STORAGE_S3_S3_BLOB_SOURCE_H_

#include <cstdint>
#include <memory>

#include "storage/blob_source.h"
#include "storage/s3/s3_client.h"

namespace optfarm::storage {

// `read_ahead_bytes` as S3BlobStoreOptions'. Asks the bucket for nothing yet.
std::unique_ptr<BlobSource> MakeS3BlobSource(
    const S3ClientOptions& options,
    int64_t read_ahead_bytes = int64_t{4} << 20);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_BLOB_SOURCE_H_
