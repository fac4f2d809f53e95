// Addresses that carry their own signature (AWS Signature Version 4, "query
// parameters"): whoever has one can GET the object for a while.

#ifndef OPTFARM_STORAGE_S3_S3_SIGNATURE_H_
#define OPTFARM_STORAGE_S3_S3_SIGNATURE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/s3/s3_location.h"

namespace optfarm::storage {

// The address of a key below the location's prefix, signed at `now`.
// REQUIRES: `key` has no characters that need an escape; 1 second <= valid <= 7
// days.
std::string PresignedGet(const S3Location& location,
                         const S3Credentials& credentials,
                         absl::string_view key, absl::Time now,
                         absl::Duration valid);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_SIGNATURE_H_
