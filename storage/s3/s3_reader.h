// Reads a blob from the object store in ranges, a bounded piece ahead.

#ifndef OPTFARM_STORAGE_S3_S3_READER_H_
#define OPTFARM_STORAGE_S3_S3_READER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "storage/blob_id.h"
#include "storage/blob_store.h"
#include "storage/s3/s3_client.h"

namespace optfarm::storage {

// `closed` is called when the reader goes.
// OWNERSHIP: `client` is the caller's and outlives the reader.
std::unique_ptr<BlobReader> MakeS3Reader(S3Client& client, const BlobId& id,
                                         int64_t read_ahead_bytes,
                                         std::function<void()> closed);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_READER_H_
