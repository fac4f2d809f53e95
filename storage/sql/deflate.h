// Bytes made smaller by zlib, for what is kept for long and read seldom.

#ifndef OPTFARM_STORAGE_SQL_DEFLATE_H_
#define OPTFARM_STORAGE_SQL_DEFLATE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::storage {

// ERRORS: ResourceExhausted when zlib gets no memory.
absl::StatusOr<std::string> Deflate(absl::string_view bytes);

// UNITS: bytes that Deflate was given.
// ERRORS: DataLoss when it is not what Deflate made of so many bytes.
absl::StatusOr<std::string> Inflate(absl::string_view deflated, size_t size);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQL_DEFLATE_H_
