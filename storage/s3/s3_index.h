// What a server knows of its bucket without asking it: blobs with size and last
// use, and uploads that are under way with the parts that are there. An SQLite
// database of the server's own; when it is lost, the blobs are listed anew and
// the uploads begin again.

#ifndef OPTFARM_STORAGE_S3_S3_INDEX_H_
#define OPTFARM_STORAGE_S3_S3_INDEX_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/sqlite/database.h"

namespace optfarm::storage {

struct S3BlobRecord {
  std::string sha256;
  // UNITS: bytes.
  int64_t size_bytes = 0;
  absl::Time last_used;
};

// An upload in parts. Its name is that of its staged bytes.
struct S3UploadRecord {
  std::string name;
  std::string sha256;
  std::string upload_id;
  // UNITS: bytes of each part but the last.
  int64_t part_bytes = 0;
  // Of the bytes in the parts, as ResumableSha256::Save wrote it.
  std::string hash;
  // By number, from 1.
  std::vector<std::string> etags;
};

// THREADS: safe.
class S3Index {
 public:
  // Opens or makes the database. A damaged one, and one of another `location`
  // (any text), is replaced by an empty one.
  // ERRORS: those of SqliteDatabase.
  static absl::StatusOr<std::unique_ptr<S3Index>> Open(
      const std::string& path, const std::string& location);

  // False until SetListed: the blobs have yet to be listed.
  absl::StatusOr<bool> IsListed();
  absl::Status SetListed();

  absl::StatusOr<std::optional<S3BlobRecord>> Find(absl::string_view sha256);
  // Adds or replaces all of them in one transaction.
  absl::Status PutBlobs(const std::vector<S3BlobRecord>& blobs);
  absl::Status Touch(absl::string_view sha256, absl::Time now);
  // Forgets the blob unless it was used at or after `unused_since`; false when
  // it was, or is not there.
  absl::StatusOr<bool> RemoveBlob(absl::string_view sha256,
                                  absl::Time unused_since);
  // Blobs last used before `unused_since`, least recently used first, after
  // `after` (default: from the first on), `limit` at most.
  absl::StatusOr<std::vector<S3BlobRecord>> Unused(absl::Time unused_since,
                                                   const S3BlobRecord& after,
                                                   int limit);
  // Counts all blobs. UNITS: bytes.
  struct Totals {
    int64_t blobs = 0;
    int64_t bytes = 0;
  };
  absl::StatusOr<Totals> CountBlobs();

  absl::StatusOr<std::optional<S3UploadRecord>> FindUpload(
      absl::string_view name);
  // A new upload, without parts.
  absl::Status AddUpload(const S3UploadRecord& upload);
  // Notes that part `number` is there, and the hash of all up to it.
  absl::Status AddPart(absl::string_view name, int number,
                       absl::string_view etag, absl::string_view hash,
                       absl::Time now);
  absl::Status RemoveUpload(absl::string_view name);
  // Uploads to which nothing was added since `before`, without their parts.
  absl::StatusOr<std::vector<S3UploadRecord>> StaleUploads(absl::Time before);
  absl::StatusOr<bool> KnowsUpload(absl::string_view upload_id);
  // UNITS: bytes in the parts of all uploads.
  absl::StatusOr<int64_t> PartBytes();

 private:
  explicit S3Index(std::unique_ptr<SqliteDatabase> db) : db_(std::move(db)) {}
  absl::Status SetUp(const std::string& location);

  absl::Mutex mutex_;
  const std::unique_ptr<SqliteDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_S3_INDEX_H_
