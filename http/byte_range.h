// The headers that speak of parts: Range and Content-Range.

#ifndef OPTFARM_HTTP_BYTE_RANGE_H_
#define OPTFARM_HTTP_BYTE_RANGE_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::http {

// UNITS: bytes, of a part that is sent.
struct SentRange {
  int64_t offset = 0;
  int64_t length = 0;
  int64_t total = 0;
};

// "bytes 0-99/1000". ERRORS: InvalidArgument; also when the total is unknown.
absl::StatusOr<SentRange> ParseContentRange(absl::string_view header);

// What "bytes=0-99", "bytes=100-" or "bytes=-10" mean for `total` bytes.
struct WantedRange {
  // Nothing in the header that this door serves: send all of it.
  bool all = true;
  // It cannot be had (416).
  bool unsatisfiable = false;
  int64_t offset = 0;
  int64_t length = 0;
};
WantedRange ParseRange(absl::string_view header, int64_t total);

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_BYTE_RANGE_H_
