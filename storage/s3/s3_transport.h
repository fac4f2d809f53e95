// Signed requests to an object store, one at a time each: connections,
// signature V4, time limits, and bounds on what an answer may take. What an
// answer means is the matter of s3_client.h.

#ifndef OPTFARM_STORAGE_S3_S3_TRANSPORT_H_
#define OPTFARM_STORAGE_S3_S3_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/s3/s3_location.h"

namespace optfarm::storage {

struct S3Request {
  std::string method;
  // Below the bucket, without the prefix's and with no leading '/'. Characters
  // that need no escape.
  std::string key;
  // Sorted by name, not yet escaped.
  std::vector<std::pair<std::string, std::string>> query;
  // First and last byte; first < 0: the whole object.
  int64_t first_byte = -1;
  int64_t last_byte = -1;
  // OWNERSHIP: the caller's, until Send returns.
  absl::string_view body;
  // UNITS: bytes that the answer's body may have.
  int64_t max_answer_bytes = 1 << 20;
};

struct S3Answer {
  int status = 0;
  std::string body;
  // Of a HEAD too, which has no body; -1: not said.
  int64_t content_length = -1;
  // From Content-Range, or the length of a whole answer; -1: not said.
  int64_t object_bytes = -1;
  std::string etag;
  // The region that the bucket is really in, where the store says so.
  std::string region;
  // ETags of objects under a key management service are no MD5.
  bool encrypted = false;
};

struct S3TransportOptions {
  S3Location location;
  S3Credentials credentials;
  absl::Duration connect_timeout = absl::Seconds(5);
  // Without a byte in either direction. UNITS: whole seconds.
  absl::Duration stall_timeout = absl::Seconds(20);
};

// THREADS: safe; each thread that sends uses a connection of its own.
class S3Transport {
 public:
  explicit S3Transport(S3TransportOptions options);
  ~S3Transport();
  S3Transport(const S3Transport&) = delete;
  S3Transport& operator=(const S3Transport&) = delete;

  // Returns whatever the store answers, errors too.
  // ERRORS: Unavailable when no whole answer came; DataLoss when it was larger
  // than allowed.
  absl::StatusOr<S3Answer> Send(const S3Request& request);

  const S3Location& location() const { return options_.location; }

 private:
  class Connections;

  const S3TransportOptions options_;
  const std::unique_ptr<Connections> connections_;
};

// Where an object is; `key` begins with the prefix, if there is one.
std::string ObjectUrl(const S3Location& location, absl::string_view key);

// `text` with all but letters, digits, '-', '.', '_' and '~' escaped.
std::string PercentEncoded(absl::string_view text);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_TRANSPORT_H_
