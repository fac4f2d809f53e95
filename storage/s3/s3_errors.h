// What an object store's refusals mean for whoever asked.

#ifndef OPTFARM_STORAGE_S3_S3_ERRORS_H_
#define OPTFARM_STORAGE_S3_S3_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/s3/s3_transport.h"

namespace optfarm::storage {

// The status of an answer; `doing` begins its message. OK for 2xx.
// ERRORS: those of S3Client.
absl::Status StatusOfAnswer(const S3Answer& answer, const S3Location& location,
                            absl::string_view doing);

// The status of an error that came in an answer's body, whatever its number.
absl::Status StatusOfErrorBody(const S3Answer& answer,
                               const S3Location& location,
                               absl::string_view doing);

// Whether the same request may succeed in a moment.
bool IsPassing(const absl::Status& status);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_ERRORS_H_
