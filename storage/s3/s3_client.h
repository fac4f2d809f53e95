// The calls of an object store that the blob store uses: each is sent again
// while the store is busy or away, for a bounded time, and its errors say what
// to do. Keys are below the location's prefix.

#ifndef OPTFARM_STORAGE_S3_S3_CLIENT_H_
#define OPTFARM_STORAGE_S3_S3_CLIENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "storage/s3/s3_errors.h"
#include "storage/s3/s3_transport.h"

namespace optfarm::storage {

struct S3ClientOptions {
  S3TransportOptions transport;
  // Of one call, the first one included.
  int max_attempts = 6;
  // Doubled with each attempt, up to the longest; a random half is taken off.
  absl::Duration first_pause = absl::Milliseconds(200);
  absl::Duration longest_pause = absl::Seconds(5);
  // No attempt begins later than this after the first.
  absl::Duration give_up_after = absl::Seconds(60);
};

struct S3Object {
  // Below the prefix.
  std::string key;
  // UNITS: bytes; as the store says, so it may be anything from 0 up.
  int64_t size_bytes = 0;
  absl::Time modified;
};

struct S3ObjectPage {
  std::vector<S3Object> objects;
  // Where the next page begins; empty: this is the last.
  std::string next;
};

// An upload in parts that has not ended.
struct S3OpenUpload {
  std::string key;
  std::string upload_id;
  absl::Time begun;
};

struct S3UploadPage {
  std::vector<S3OpenUpload> uploads;
  // Both empty: this is the last page.
  std::string next_key;
  std::string next_id;
};

// ERRORS, of all calls: Unavailable when the store is away or busy;
// FailedPrecondition when it refuses the keys, region or bucket;
// ResourceExhausted when it is full; DataLoss when bytes were damaged on their
// way; Internal for other refusals.
// THREADS: safe. Calls block, up to the time that retries take.
class S3Client {
 public:
  explicit S3Client(const S3ClientOptions& options);

  // Whether the bucket answers.
  absl::Status Check();

  absl::Status Put(absl::string_view key, absl::string_view bytes);
  // `length` bytes from `offset` of an object of `object_bytes`.
  // REQUIRES: length > 0. ERRORS: NotFound; DataLoss when the object has
  // another size.
  absl::StatusOr<std::string> Get(absl::string_view key, int64_t offset,
                                  int64_t length, int64_t object_bytes);
  // UNITS: bytes. ERRORS: NotFound.
  absl::StatusOr<int64_t> SizeOf(absl::string_view key);
  // OK when there is none.
  absl::Status Delete(absl::string_view key);
  // Objects below `folder`, in order, from `from` on ("": the first).
  absl::StatusOr<S3ObjectPage> List(absl::string_view folder,
                                    absl::string_view from);

  // Returns the upload's id.
  absl::StatusOr<std::string> BeginUpload(absl::string_view key);
  // Parts count from 1. Returns the part's ETag. ERRORS: NotFound when the
  // upload is gone.
  absl::StatusOr<std::string> PutPart(absl::string_view key,
                                      absl::string_view upload_id, int number,
                                      absl::string_view bytes);
  // ERRORS: NotFound when the upload is gone, perhaps because it is complete.
  absl::Status CompleteUpload(absl::string_view key,
                              absl::string_view upload_id,
                              const std::vector<std::string>& etags);
  // OK when it is gone.
  absl::Status AbortUpload(absl::string_view key, absl::string_view upload_id);
  absl::StatusOr<S3UploadPage> ListUploads(absl::string_view folder,
                                           absl::string_view from_key,
                                           absl::string_view from_id);

  const S3Location& location() const { return transport_.location(); }

 private:
  S3Request Request(absl::string_view method, absl::string_view key) const;
  // Any answer that says success, after retries.
  absl::StatusOr<S3Answer> Send(const S3Request& request,
                                absl::string_view doing);
  absl::StatusOr<S3Answer> SendOnce(const S3Request& request,
                                    absl::string_view doing);
  absl::StatusOr<std::string> PutPartOnce(const S3Request& request,
                                          absl::string_view doing);

  const S3ClientOptions options_;
  S3Transport transport_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_CLIENT_H_
