// What brings index, bucket and staged files together: at the start, and when
// uploads are given up.

#ifndef OPTFARM_STORAGE_S3_S3_UPKEEP_H_
#define OPTFARM_STORAGE_S3_S3_UPKEEP_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "storage/s3/s3_client.h"
#include "storage/s3/s3_index.h"
#include "storage/s3/s3_staging.h"

namespace optfarm::storage {

// Fills a new index with the blobs of the bucket; their time of last use is
// when they were written. ERRORS: those of client and index.
absl::Status ListBlobsOnce(S3Client& client, S3Index& index);

// Forgets what is staged under names that are not in `open` and was not touched
// since `before`. Parts in the bucket stay, no longer known.
absl::Status ForgetStaged(const S3StagingHome& home, absl::Time before,
                          const absl::flat_hash_set<std::string>& open);

// Aborts the bucket's uploads that began before `before` and are not known.
absl::Status AbortUnknownUploads(S3Client& client, S3Index& index,
                                 absl::Time before);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_UPKEEP_H_
