#include "server/upkeep/migration.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/upkeep/data_dir.h"
#include "server/upkeep/migration_side.h"

namespace optfarm::server {
namespace {

using storage::SqlSide;
using storage::SqlTable;

// A small file waits for its store, not for the processor.
constexpr int kBlobsAtOnce = 8;
// UNITS: bytes.
constexpr int64_t kPiece = int64_t{1} << 20;
constexpr int64_t kTellRows = 200'000;

// Folders that are in use, each opened once though both sides may want it.
class Folders {
 public:
  absl::StatusOr<const DataDir*> Open(const std::string& path) {
    std::unique_ptr<DataDir>& folder = folders_[path];
    if (folder == nullptr) {
      OPTFARM_ASSIGN_OR_RETURN(folder, DataDir::Open(path));
    }
    return folder.get();
  }

 private:
  std::map<std::string, std::unique_ptr<DataDir>> folders_;
};

absl::StatusOr<std::unique_ptr<MigrationSide>> OpenSide(
    const std::string& database, const std::string& data_dir, bool must_exist,
    Folders& folders, absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                           FolderOfSide(database, data_dir));
  const DataDir* opened = nullptr;
  if (!folder.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(opened, folders.Open(folder));
  }
  return MigrationSide::Open(database, opened, must_exist, now);
}

absl::Status CheckEmpty(const MigrationSide& to) {
  for (const SqlTable& table : to.Tables()) {
    OPTFARM_ASSIGN_OR_RETURN(const SqlSide side, to.SideOf(table));
    OPTFARM_ASSIGN_OR_RETURN(const bool has, storage::HasRows(table, side));
    if (!has) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the target ", to.name(), " has records already (in the table ",
        table.name, "); migrate into a new database"));
  }
  return absl::OkStatus();
}

// The schema of SQLite begins with a row of its own.
absl::Status RemoveFirstEnvironment(storage::SqlDatabase& db) {
  storage::SqlTransaction transaction(db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  {
    storage::SqlStatement remove = db.Prepare(
        "DELETE FROM environments WHERE environment_id = 0"
        " AND NOT EXISTS (SELECT 1 FROM jobs)");
    OPTFARM_RETURN_IF_ERROR(remove.Run());
  }
  return transaction.Commit();
}

// Marks the target as half of a farm, or finds that it is this one's half.
absl::Status BeginOrGoOn(const MigrationSide& from, const MigrationSide& to) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string of_target,
                           storage::UnfinishedCopyOf(from.records()));
  if (!of_target.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(from.name(), " holds an unfinished migration from ",
                     of_target, "; finish that one first"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string begun,
                           storage::UnfinishedCopyOf(to.records()));
  if (begun == from.name()) {
    LogInfo("going on with the migration that was begun");
    return absl::OkStatus();
  }
  if (!begun.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the target ", to.name(), " holds an unfinished migration from ", begun,
        ", not from ", from.name(), "; use a new database"));
  }
  OPTFARM_RETURN_IF_ERROR(RemoveFirstEnvironment(*to.records().db));
  OPTFARM_RETURN_IF_ERROR(CheckEmpty(to));
  return storage::MarkUnfinished(to.records(), from.name());
}

absl::StatusOr<MigratedTable> CopyTable(const SqlTable& table,
                                        const MigrationSide& from,
                                        const MigrationSide& to) {
  OPTFARM_ASSIGN_OR_RETURN(const SqlSide source, from.SideOf(table));
  OPTFARM_ASSIGN_OR_RETURN(const SqlSide target, to.SideOf(table));
  MigratedTable migrated;
  migrated.name = table.name;
  int64_t untold = 0;
  int64_t all = 0;
  OPTFARM_ASSIGN_OR_RETURN(
      migrated.copied,
      storage::CopyRows(table, source, target, [&](int64_t rows) {
        all += rows;
        untold += rows;
        if (untold < kTellRows) return;
        untold = 0;
        LogInfo(table.name, ": ", all, " rows copied");
      }));
  return migrated;
}

absl::Status Compare(const SqlTable& table, const MigrationSide& from,
                     const MigrationSide& to, MigratedTable& migrated) {
  OPTFARM_ASSIGN_OR_RETURN(const SqlSide source, from.SideOf(table));
  OPTFARM_ASSIGN_OR_RETURN(const SqlSide target, to.SideOf(table));
  OPTFARM_ASSIGN_OR_RETURN(const storage::TableDigest a,
                           storage::DigestOf(table, source));
  OPTFARM_ASSIGN_OR_RETURN(const storage::TableDigest b,
                           storage::DigestOf(table, target));
  migrated.rows = b.rows;
  migrated.sha256 = b.sha256;
  if (a == b) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the table ", table.name, " has ", a.rows, " rows at ", from.name(),
      " and ", b.rows, " at ", to.name(),
      a.rows == b.rows ? ", and they are not the same" : "",
      "; has a server used the source since the migration began? Migrate into "
      "a new database"));
}

// Blobs on their way, in several threads.
class BlobCopy {
 public:
  BlobCopy(storage::BlobStore& from, storage::BlobStore& to,
           std::vector<std::string> names, absl::Time now)
      : from_(from), to_(to), names_(std::move(names)), now_(now) {}

  absl::Status Run(MigrationReport& report) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kBlobsAtOnce; ++i) {
      threads.emplace_back([this] { Work(); });
    }
    for (std::thread& thread : threads) thread.join();
    absl::MutexLock lock(&mutex_);
    report.blobs = report_.blobs;
    report.blob_bytes = report_.blob_bytes;
    report.copied_blobs = report_.copied_blobs;
    report.missing_blobs = report_.missing_blobs;
    return status_;
  }

 private:
  void Work() {
    for (size_t i = next_++; i < names_.size(); i = next_++) {
      {
        absl::MutexLock lock(&mutex_);
        if (!status_.ok()) return;
      }
      const absl::Status copied = Copy(names_[i]);
      absl::MutexLock lock(&mutex_);
      if (status_.ok() && !copied.ok()) {
        status_ = Annotate(copied, absl::StrCat("copying file ", names_[i]));
      }
    }
  }

  absl::Status Copy(const std::string& sha256) {
    const auto reader = from_.OpenBlob(sha256);
    if (absl::IsNotFound(reader.status())) {
      absl::MutexLock lock(&mutex_);
      ++report_.missing_blobs;
      return absl::OkStatus();
    }
    OPTFARM_RETURN_IF_ERROR(reader.status());
    const storage::BlobId id{sha256, (*reader)->size_bytes()};
    OPTFARM_ASSIGN_OR_RETURN(const bool there, to_.Contains(id, now_));
    if (!there) OPTFARM_RETURN_IF_ERROR(Transfer(**reader, id));
    absl::MutexLock lock(&mutex_);
    ++report_.blobs;
    report_.blob_bytes += id.size_bytes;
    if (!there) ++report_.copied_blobs;
    return absl::OkStatus();
  }

  // What was staged by an earlier run is not sent again. The digest is checked
  // at the end of the upload.
  absl::Status Transfer(storage::BlobReader& reader,
                        const storage::BlobId& id) {
    OPTFARM_ASSIGN_OR_RETURN(const auto upload, to_.OpenUpload(id));
    while (upload->staged_bytes() < id.size_bytes) {
      const int64_t offset = upload->staged_bytes();
      OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                               reader.Read(offset, kPiece));
      OPTFARM_RETURN_IF_ERROR(upload->Append(offset, bytes));
    }
    return upload->Finish(now_);
  }

  storage::BlobStore& from_;
  storage::BlobStore& to_;
  const std::vector<std::string> names_;
  const absl::Time now_;
  std::atomic<size_t> next_{0};
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  MigrationReport report_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::vector<std::string>> BlobNames(const MigrationSide& side) {
  storage::SqlDatabase& db = *side.records().db;
  storage::SqlTransaction transaction(db, storage::SqlTransaction::Mode::kRead);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  std::vector<std::string> names;
  storage::SqlStatement query = db.Prepare(
      "SELECT sha256 FROM job_blobs UNION SELECT sha256 FROM project_blobs");
  while (query.Step()) names.push_back(query.Text(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return names;
}

// The folder of the SQLite side, unless another one was given.
absl::StatusOr<std::string> DataFolder(const MigrationOptions& options) {
  if (!options.data_dir.empty()) return options.data_dir;
  for (const std::string& database : {options.to, options.from}) {
    OPTFARM_ASSIGN_OR_RETURN(std::string folder, FolderOfSide(database, ""));
    if (!folder.empty()) return folder;
  }
  return absl::InvalidArgumentError(
      "copying files needs --data_dir, the data folder of the server that will "
      "use them");
}

// What can be known to be wrong before anything is touched.
absl::Status Check(const MigrationOptions& options) {
  for (const std::string& database : {options.from, options.to}) {
    OPTFARM_RETURN_IF_ERROR(FolderOfSide(database, options.data_dir).status());
  }
  if (options.to_blobs.blobs.empty()) return absl::OkStatus();
  if (absl::StartsWith(options.from_blobs.blobs, "s3:") &&
      absl::StartsWith(options.to_blobs.blobs, "s3:")) {
    return absl::InvalidArgumentError(
        "files are not copied from bucket to bucket here: use any S3 client, "
        "and leave out --from_blobs and --to_blobs");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string home,
                           FolderOfSide(options.from, options.data_dir));
  if (!home.empty() || !options.from_blobs.blobs.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "where the files are now is not said: give --from_blobs=file:FOLDER or "
      "--from_blobs=s3://BUCKET/PREFIX");
}

absl::Status CopyBlobs(const MigrationOptions& options,
                       const MigrationSide& from, Folders& folders,
                       absl::Time now, MigrationReport& report) {
  if (options.to_blobs.blobs.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::string path, DataFolder(options));
  OPTFARM_ASSIGN_OR_RETURN(const DataDir* const folder, folders.Open(path));
  // Where a server with SQLite has them.
  OPTFARM_ASSIGN_OR_RETURN(const std::string home,
                           FolderOfSide(options.from, options.data_dir));
  const DataDir* from_folder = folder;
  if (!home.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(from_folder, folders.Open(home));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const auto source,
      OpenBlobs(options.from_blobs, options.limits, *from_folder));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto target, OpenBlobs(options.to_blobs, options.limits, *folder));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<std::string> names, BlobNames(from));
  LogInfo("copying ", names.size(), " files");
  return BlobCopy(*source, *target, std::move(names), now).Run(report);
}

}  // namespace

absl::StatusOr<MigrationReport> Migrate(const MigrationOptions& options,
                                        absl::Time now) {
  OPTFARM_RETURN_IF_ERROR(Check(options));
  Folders folders;
  OPTFARM_ASSIGN_OR_RETURN(const auto from,
                           OpenSide(options.from, options.data_dir,
                                    /*must_exist=*/true, folders, now));
  OPTFARM_ASSIGN_OR_RETURN(const auto to,
                           OpenSide(options.to, options.data_dir,
                                    /*must_exist=*/false, folders, now));
  if (from->name() == to->name()) {
    return absl::InvalidArgumentError(
        "a migration goes from one database to another one");
  }
  OPTFARM_RETURN_IF_ERROR(BeginOrGoOn(*from, *to));
  MigrationReport report;
  // Records that name a file are nowhere without it.
  OPTFARM_RETURN_IF_ERROR(CopyBlobs(options, *from, folders, now, report));
  const std::vector<SqlTable> tables = from->Tables();
  for (const SqlTable& table : tables) {
    OPTFARM_ASSIGN_OR_RETURN(MigratedTable copied,
                             CopyTable(table, *from, *to));
    report.tables.push_back(std::move(copied));
  }
  LogInfo("comparing all rows of both sides");
  for (size_t i = 0; i < tables.size(); ++i) {
    OPTFARM_RETURN_IF_ERROR(Compare(tables[i], *from, *to, report.tables[i]));
  }
  if (const std::string uptime = from->Uptime(); !uptime.empty()) {
    OPTFARM_RETURN_IF_ERROR(to->SetUptime(uptime));
  }
  OPTFARM_RETURN_IF_ERROR(storage::MarkFinished(to->records()));
  return report;
}

std::string ToText(const MigrationReport& report) {
  std::string text = absl::StrFormat("%-16s %10s %10s  %s\n", "TABLE", "ROWS",
                                     "COPIED NOW", "SHA-256 OF BOTH SIDES");
  for (const MigratedTable& table : report.tables) {
    absl::StrAppendFormat(&text, "%-16s %10d %10d  %s\n", table.name,
                          table.rows, table.copied, table.sha256);
  }
  absl::StrAppendFormat(
      &text,
      "files: %d with %d bytes, %d of them copied now; %d were missing\n",
      report.blobs, report.blob_bytes, report.copied_blobs,
      report.missing_blobs);
  return text;
}

}  // namespace optfarm::server
