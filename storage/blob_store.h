// BlobStore: immutable bytes by SHA-256. Start here for the bytes half of
// storage/; metadata_store.h is the other half.
//
// An upload is staged beside the store and becomes a blob in one step, when its
// length and hash have been checked and it is durable. Whatever happens in
// between, a blob that exists is whole and right.

#ifndef OPTFARM_STORAGE_BLOB_STORE_H_
#define OPTFARM_STORAGE_BLOB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/blob_id.h"

namespace optfarm::storage {

// One stream of bytes into a blob.
// THREADS: one thread at a time; different uploads, even of one blob, may be in
// different threads.
// OWNERSHIP: the destructor keeps what was staged, so that a later upload goes
// on from there. Must not outlive its store.
class BlobUpload {
 public:
  virtual ~BlobUpload() = default;

  // UNITS: bytes staged so far; where the next byte must go.
  virtual int64_t staged_bytes() const = 0;

  // Adds bytes at `offset`; those that are already staged are skipped.
  // ERRORS: InvalidArgument when there would be a gap or more bytes than the
  // blob has; Aborted when a newer upload took over; ResourceExhausted when the
  // disk is full (the staged bytes are then given up to free it).
  virtual absl::Status Append(int64_t offset, absl::string_view bytes) = 0;

  // Checks and publishes the blob. `now` becomes its time of last use.
  // ENSURES: on OK the blob is durable.
  // ERRORS: FailedPrecondition when bytes are missing; DataLoss when the hash
  // is another one (the staged bytes are thrown away); those of Append.
  virtual absl::Status Finish(absl::Time now) = 0;
};

// Reads one blob; goes on working when the blob is evicted meanwhile.
// THREADS: safe.
class BlobReader {
 public:
  virtual ~BlobReader() = default;
  // UNITS: bytes.
  virtual int64_t size_bytes() const = 0;
  // Returns `max_bytes` from `offset`, fewer only at the blob's end.
  // ERRORS: OutOfRange beyond the end; DataLoss when the file is shorter than
  // the blob.
  virtual absl::StatusOr<std::string> Read(int64_t offset,
                                           int64_t max_bytes) = 0;
};

// UNITS: bytes.
struct BlobUsage {
  int64_t blobs = 0;
  int64_t blob_bytes = 0;
  int64_t staged_bytes = 0;
};

// What an eviction removed.
struct Eviction {
  // UNITS: bytes.
  int64_t bytes = 0;
  // SHA-256 of each blob.
  std::vector<std::string> blobs;
};

// THREADS: all methods are safe.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // True when the blob is here; `now` becomes its time of last use.
  // ERRORS: InvalidArgument when a blob with this hash and another size is.
  virtual absl::StatusOr<bool> Contains(const BlobId& id, absl::Time now) = 0;

  // UNITS: bytes staged by earlier uploads; for an id without an uploader, the
  // blob's size when it is here.
  // ERRORS: ResourceExhausted when the blob is larger than the store takes.
  virtual absl::StatusOr<int64_t> CommittedBytes(const BlobId& id) = 0;

  // Begins or goes on with an upload, taking it over from any other.
  // REQUIRES: !Contains(id); uploading a blob twice is harmless, only useless.
  // ERRORS: ResourceExhausted when the blob is too large, or would overfill
  // quota or disk; decided before anything is written.
  virtual absl::StatusOr<std::unique_ptr<BlobUpload>> OpenUpload(
      const BlobId& id) = 0;

  // ERRORS: NotFound. `sha256` need not be checked by the caller.
  virtual absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlob(
      absl::string_view sha256) = 0;

  // Removes blobs not in `keep` and not used since `unused_since`, least
  // recently used first, until `wanted_bytes` are free or none is left.
  virtual absl::StatusOr<Eviction> Evict(
      const absl::flat_hash_set<std::string>& keep, absl::Time unused_since,
      int64_t wanted_bytes) = 0;

  // Removes those of the blobs that were not used since `unused_since`.
  // Returns which are not here now; those that never were count too.
  virtual absl::StatusOr<std::vector<std::string>> Remove(
      absl::Span<const std::string> sha256, absl::Time unused_since) = 0;

  // Forgets staged uploads that nobody touched since `before`.
  virtual absl::Status ForgetUploads(absl::Time before) = 0;

  virtual BlobUsage Usage() = 0;

  // Where whoever has the address can GET the blob from until `valid` after
  // `now`; empty: nowhere but here. Not logged: it is as good as the bytes.
  virtual std::string DownloadUrl(absl::string_view sha256, absl::Time now,
                                  absl::Duration valid) {
    return "";
  }
};

// What OpenBlob says of a blob that is not here, or not for whoever asks.
absl::Status NoSuchBlob(absl::string_view sha256);

// Uploads `bytes` in one go and returns their name.
absl::StatusOr<BlobId> PutBlob(BlobStore& store, absl::string_view bytes,
                               absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_BLOB_STORE_H_
