// Where an object store is and with which keys: what flags, environment and
// files say, checked.

#ifndef OPTFARM_STORAGE_S3_S3_LOCATION_H_
#define OPTFARM_STORAGE_S3_S3_LOCATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::storage {

struct S3Location {
  std::string bucket;
  // Before all keys; empty, or with a '/' at its end.
  std::string prefix;
  // http[s]://HOST[:PORT]
  std::string endpoint;
  std::string region = "us-east-1";
  // ENDPOINT/BUCKET/KEY; otherwise BUCKET.HOST/KEY.
  bool path_style = false;
};

// Never logged, never part of a message.
struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  // Of temporary keys; empty for others.
  std::string session_token;
};

// Reads s3://BUCKET/PREFIX. An empty endpoint becomes Amazon's of the region.
// ERRORS: InvalidArgument saying which part is wrong.
absl::StatusOr<S3Location> ParseS3Location(absl::string_view url,
                                           absl::string_view endpoint,
                                           absl::string_view region,
                                           bool path_style);

// Reads keys from the file, in the form of AWS's credentials file (its first
// profile), or from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN where `file` is empty.
// ERRORS: FailedPrecondition when there are none; those of ReadFile.
absl::StatusOr<S3Credentials> ReadS3Credentials(const std::string& file);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_LOCATION_H_
