// The bytes of one upload to an object store until they are a blob: whole parts
// in the store, the rest in a file of this machine, the hash of the parts in
// the index. All of it survives the process.
//
//   FOLDER/NAME.3   the bytes after part 2; part 3 once they are enough

#ifndef OPTFARM_STORAGE_S3_S3_STAGING_H_
#define OPTFARM_STORAGE_S3_S3_STAGING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/resumable_sha256.h"
#include "storage/blob_id.h"
#include "storage/file_system.h"
#include "storage/s3/s3_client.h"
#include "storage/s3/s3_index.h"

namespace optfarm::storage {

// What all uploads of a store share. OWNERSHIP: the store's.
struct S3StagingHome {
  S3Client& client;
  S3Index& index;
  FileSystem& files;
  // Of the files.
  std::string folder;
  // UNITS: bytes of a part, before it grows for blobs of more than 10,000.
  int64_t part_bytes = 0;
};

// The key of a blob.
std::string S3BlobKey(absl::string_view sha256);
// The name of what is staged of `id`. The size is in it: bytes staged under a
// wrong size are not mixed up with those staged under the right one.
std::string S3StagedName(const BlobId& id);
// UNITS: bytes staged under that name by uploads that are not open.
absl::StatusOr<int64_t> S3StagedBytes(const S3StagingHome& home,
                                      const std::string& name);

// THREADS: one thread at a time, but for staged_bytes().
class S3Staging {
 public:
  // Goes on with what is there.
  static absl::StatusOr<std::unique_ptr<S3Staging>> Open(
      const S3StagingHome& home, const BlobId& id);

  // UNITS: bytes.
  int64_t staged_bytes() const { return staged_; }

  // Adds bytes at the end; sends parts that are full before more bytes come.
  // ERRORS: those of S3Client, after which some of the bytes may be staged;
  // those of the file system, after which the file is not to be trusted.
  absl::Status Append(absl::string_view bytes);
  // False after an error of the file system: Drop it.
  bool trusted() const { return trusted_; }

  // Checks the hash of all bytes and keeps those of the last part for Publish.
  // ERRORS: DataLoss when the hash is another one.
  absl::Status Check();

  // Makes the blob appear in the store. REQUIRES: Check() was OK. May be called
  // again after an error.
  absl::Status Publish();

  // Forgets what was staged of a blob that is published.
  absl::Status Forget();

  // Gives up all that is staged, in the store too as far as it answers.
  absl::Status Drop();

  // Makes the file durable. ERRORS: those of the file system.
  absl::Status Sync();

 private:
  S3Staging(const S3StagingHome& home, const BlobId& id);

  int parts() const {
    return upload_ ? static_cast<int>(upload_->etags.size()) : 0;
  }
  std::string TailPath() const;
  absl::Status OpenTail();
  absl::StatusOr<std::string> ReadTail();
  absl::Status SendPart(absl::string_view bytes);
  absl::Status SendFullTail();
  absl::Status CheckPublished();

  const S3StagingHome home_;
  const BlobId id_;
  const std::string name_;
  const std::string key_;
  int64_t part_bytes_;
  // From the first part on.
  std::optional<S3UploadRecord> upload_;
  // Of the bytes in parts.
  ResumableSha256 hash_;
  std::unique_ptr<AppendFile> tail_;
  int64_t tail_bytes_ = 0;
  bool trusted_ = true;
  std::atomic<int64_t> staged_ = 0;
  // Of Check: what Publish sends.
  std::string last_part_;
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_STAGING_H_
