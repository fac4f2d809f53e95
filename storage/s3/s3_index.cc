#include "storage/s3/s3_index.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

// A change of these gives `facts` another 'schema', and the index is made anew.
constexpr char kTables[] = R"(
CREATE TABLE IF NOT EXISTS facts(
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blobs(
  sha256 TEXT PRIMARY KEY,
  size_bytes INTEGER NOT NULL,
  last_used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blobs_by_use ON blobs(last_used, sha256);
CREATE TABLE IF NOT EXISTS uploads(
  name TEXT PRIMARY KEY,
  sha256 TEXT NOT NULL,
  upload_id TEXT NOT NULL,
  part_bytes INTEGER NOT NULL,
  hash TEXT NOT NULL,
  touched INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS uploads_by_id ON uploads(upload_id);
CREATE TABLE IF NOT EXISTS parts(
  name TEXT NOT NULL REFERENCES uploads(name) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY(name, number)
) WITHOUT ROWID;
)";
constexpr char kSchema[] = "1";

absl::Status SetFact(SqliteDatabase& db, absl::string_view name,
                     absl::string_view value) {
  SqlStatement insert =
      db.Prepare("INSERT OR REPLACE INTO facts(name, value) VALUES(?1, ?2)");
  insert.BindText(1, name);
  insert.BindText(2, value);
  return insert.Run();
}

// Empty for a fact that is not there.
absl::StatusOr<std::string> GetFact(SqliteDatabase& db,
                                    absl::string_view name) {
  SqlStatement query = db.Prepare("SELECT value FROM facts WHERE name = ?1");
  query.BindText(1, name);
  std::string value = query.Step() ? query.Text(0) : "";
  OPTFARM_RETURN_IF_ERROR(query.status());
  return value;
}

S3BlobRecord ReadBlob(const SqlStatement& row) {
  return {row.Text(0), row.Int(1), row.Time(2)};
}

S3UploadRecord ReadUpload(const SqlStatement& row) {
  S3UploadRecord upload;
  upload.name = row.Text(0);
  upload.sha256 = row.Text(1);
  upload.upload_id = row.Text(2);
  upload.part_bytes = row.Int(3);
  upload.hash = row.Text(4);
  return upload;
}

}  // namespace

absl::StatusOr<std::unique_ptr<S3Index>> S3Index::Open(
    const std::string& path, const std::string& location) {
  for (const bool again : {false, true}) {
    auto db = SqliteDatabase::Open(path);
    absl::Status status = db.status();
    if (db.ok()) {
      std::unique_ptr<S3Index> index(new S3Index(*std::move(db)));
      status = index->SetUp(location);
      if (status.ok()) return index;
    }
    if (again || !absl::IsDataLoss(status)) return status;
    LogWarning("making a new index of the bucket: ", status.message());
    for (const char* suffix : {"", "-wal", "-shm"}) {
      OPTFARM_RETURN_IF_ERROR(RemoveAll(path + suffix));
    }
  }
  return absl::InternalError("unreachable");
}

absl::Status S3Index::SetUp(const std::string& location) {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(db_->Run(kTables));
  OPTFARM_ASSIGN_OR_RETURN(const std::string schema, GetFact(*db_, "schema"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string known, GetFact(*db_, "location"));
  if (schema.empty()) {
    OPTFARM_RETURN_IF_ERROR(SetFact(*db_, "schema", kSchema));
    return SetFact(*db_, "location", location);
  }
  if (schema != kSchema || known != location) {
    return absl::DataLossError(absl::StrCat("the one that is there is of ",
                                            known, ", and not of ", location));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> S3Index::IsListed() {
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(const std::string value, GetFact(*db_, "listed"));
  return value == "yes";
}

absl::Status S3Index::SetListed() {
  absl::MutexLock lock(&mutex_);
  return SetFact(*db_, "listed", "yes");
}

absl::StatusOr<std::optional<S3BlobRecord>> S3Index::Find(
    absl::string_view sha256) {
  absl::MutexLock lock(&mutex_);
  SqlStatement query = db_->Prepare(
      "SELECT sha256, size_bytes, last_used FROM blobs WHERE sha256 = ?1");
  query.BindText(1, sha256);
  std::optional<S3BlobRecord> found;
  if (query.Step()) found = ReadBlob(query);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return found;
}

absl::Status S3Index::PutBlobs(const std::vector<S3BlobRecord>& blobs) {
  absl::MutexLock lock(&mutex_);
  SqlTransaction transaction(*db_);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  for (const S3BlobRecord& blob : blobs) {
    SqlStatement insert = db_->Prepare(
        "INSERT OR REPLACE INTO blobs(sha256, size_bytes, last_used) "
        "VALUES(?1, ?2, ?3)");
    insert.BindText(1, blob.sha256);
    insert.BindInt(2, blob.size_bytes);
    insert.BindInt(3, absl::ToUnixMicros(blob.last_used));
    OPTFARM_RETURN_IF_ERROR(insert.Run());
  }
  return transaction.Commit();
}

absl::Status S3Index::Touch(absl::string_view sha256, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  SqlStatement update = db_->Prepare(
      "UPDATE blobs SET last_used = max(last_used, ?2) WHERE sha256 = ?1");
  update.BindText(1, sha256);
  update.BindInt(2, absl::ToUnixMicros(now));
  return update.Run();
}

absl::StatusOr<bool> S3Index::RemoveBlob(absl::string_view sha256,
                                         absl::Time unused_since) {
  absl::MutexLock lock(&mutex_);
  SqlStatement remove =
      db_->Prepare("DELETE FROM blobs WHERE sha256 = ?1 AND last_used < ?2");
  remove.BindText(1, sha256);
  remove.BindInt(2, absl::ToUnixMicros(unused_since));
  OPTFARM_RETURN_IF_ERROR(remove.Run());
  return db_->Changes() > 0;
}

absl::StatusOr<std::vector<S3BlobRecord>> S3Index::Unused(
    absl::Time unused_since, const S3BlobRecord& after, int limit) {
  absl::MutexLock lock(&mutex_);
  SqlStatement query = db_->Prepare(
      "SELECT sha256, size_bytes, last_used FROM blobs WHERE last_used < ?1 "
      "AND (last_used, sha256) > (?2, ?3) ORDER BY last_used, sha256 LIMIT ?4");
  query.BindInt(1, absl::ToUnixMicros(unused_since));
  query.BindInt(2, absl::ToUnixMicros(after.last_used));
  query.BindText(3, after.sha256);
  query.BindInt(4, limit);
  std::vector<S3BlobRecord> blobs;
  while (query.Step()) blobs.push_back(ReadBlob(query));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return blobs;
}

absl::StatusOr<S3Index::Totals> S3Index::CountBlobs() {
  absl::MutexLock lock(&mutex_);
  SqlStatement query =
      db_->Prepare("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blobs");
  Totals totals;
  if (query.Step()) totals = {query.Int(0), query.Int(1)};
  OPTFARM_RETURN_IF_ERROR(query.status());
  return totals;
}

absl::StatusOr<std::optional<S3UploadRecord>> S3Index::FindUpload(
    absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  SqlStatement query = db_->Prepare(
      "SELECT name, sha256, upload_id, part_bytes, hash FROM uploads "
      "WHERE name = ?1");
  query.BindText(1, name);
  if (!query.Step()) {
    OPTFARM_RETURN_IF_ERROR(query.status());
    return std::nullopt;
  }
  S3UploadRecord upload = ReadUpload(query);
  SqlStatement parts =
      db_->Prepare("SELECT etag FROM parts WHERE name = ?1 ORDER BY number");
  parts.BindText(1, name);
  while (parts.Step()) upload.etags.push_back(parts.Text(0));
  OPTFARM_RETURN_IF_ERROR(parts.status());
  return upload;
}

absl::Status S3Index::AddUpload(const S3UploadRecord& upload) {
  absl::MutexLock lock(&mutex_);
  SqlStatement insert = db_->Prepare(
      "INSERT INTO uploads(name, sha256, upload_id, part_bytes, hash, touched) "
      "VALUES(?1, ?2, ?3, ?4, ?5, ?6)");
  insert.BindText(1, upload.name);
  insert.BindText(2, upload.sha256);
  insert.BindText(3, upload.upload_id);
  insert.BindInt(4, upload.part_bytes);
  insert.BindText(5, upload.hash);
  insert.BindInt(6, absl::ToUnixMicros(absl::Now()));
  return insert.Run();
}

absl::Status S3Index::AddPart(absl::string_view name, int number,
                              absl::string_view etag, absl::string_view hash,
                              absl::Time now) {
  absl::MutexLock lock(&mutex_);
  SqlTransaction transaction(*db_);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  SqlStatement insert =
      db_->Prepare("INSERT INTO parts(name, number, etag) VALUES(?1, ?2, ?3)");
  insert.BindText(1, name);
  insert.BindInt(2, number);
  insert.BindText(3, etag);
  OPTFARM_RETURN_IF_ERROR(insert.Run());
  SqlStatement update = db_->Prepare(
      "UPDATE uploads SET hash = ?2, touched = ?3 WHERE name = ?1");
  update.BindText(1, name);
  update.BindText(2, hash);
  update.BindInt(3, absl::ToUnixMicros(now));
  OPTFARM_RETURN_IF_ERROR(update.Run());
  return transaction.Commit();
}

absl::Status S3Index::RemoveUpload(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  SqlStatement remove = db_->Prepare("DELETE FROM uploads WHERE name = ?1");
  remove.BindText(1, name);
  return remove.Run();
}

absl::StatusOr<std::vector<S3UploadRecord>> S3Index::StaleUploads(
    absl::Time before) {
  absl::MutexLock lock(&mutex_);
  SqlStatement query = db_->Prepare(
      "SELECT name, sha256, upload_id, part_bytes, hash FROM uploads "
      "WHERE touched < ?1");
  query.BindInt(1, absl::ToUnixMicros(before));
  std::vector<S3UploadRecord> uploads;
  while (query.Step()) uploads.push_back(ReadUpload(query));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return uploads;
}

absl::StatusOr<bool> S3Index::KnowsUpload(absl::string_view upload_id) {
  absl::MutexLock lock(&mutex_);
  SqlStatement query =
      db_->Prepare("SELECT 1 FROM uploads WHERE upload_id = ?1");
  query.BindText(1, upload_id);
  const bool known = query.Step();
  OPTFARM_RETURN_IF_ERROR(query.status());
  return known;
}

absl::StatusOr<int64_t> S3Index::PartBytes() {
  absl::MutexLock lock(&mutex_);
  SqlStatement query = db_->Prepare(
      "SELECT coalesce(sum(part_bytes), 0) FROM uploads JOIN parts "
      "USING(name)");
  const int64_t bytes = query.Step() ? query.Int(0) : 0;
  OPTFARM_RETURN_IF_ERROR(query.status());
  return bytes;
}

}  // namespace optfarm::storage
