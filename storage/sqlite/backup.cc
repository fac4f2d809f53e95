#include "storage/sqlite/backup.h"

#include <sqlite3.h>

#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "storage/file_system.h"

namespace optfarm::storage {
namespace {

constexpr int kBusyTimeoutMilliseconds = 10'000;

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

absl::Status Failure(int result) {
  const std::string message =
      absl::StrCat("copying or reading the database: ", sqlite3_errstr(result));
  switch (result & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(message, "; free space on the server's disk"));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(message);
    default:
      return absl::UnavailableError(message);
  }
}

absl::StatusOr<Database> Open(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database db(raw);
  if (result != SQLITE_OK) return Failure(result);
  sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  return db;
}

absl::Status Copy(const std::string& source, const std::string& target) {
  OPTFARM_ASSIGN_OR_RETURN(const Database from,
                           Open(source, SQLITE_OPEN_READONLY));
  OPTFARM_ASSIGN_OR_RETURN(
      const Database to,
      Open(target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  sqlite3_exec(to.get(), "PRAGMA synchronous=FULL", nullptr, nullptr, nullptr);
  sqlite3_backup* backup =
      sqlite3_backup_init(to.get(), "main", from.get(), "main");
  if (backup == nullptr) return Failure(sqlite3_errcode(to.get()));
  // In one step, which is one reading transaction: between steps a change by
  // somebody else would begin the copy anew. With a write-ahead log a reader
  // holds up nobody.
  sqlite3_backup_step(backup, -1);
  const int result = sqlite3_backup_finish(backup);
  if (result != SQLITE_OK) return Failure(result);
  // What is copied says that it has a write-ahead log; a backup is one file.
  const int alone = sqlite3_exec(to.get(), "PRAGMA journal_mode=DELETE",
                                 nullptr, nullptr, nullptr);
  return alone == SQLITE_OK ? absl::OkStatus() : Failure(alone);
}

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};

// The first column of all rows.
absl::StatusOr<std::vector<std::string>> FirstColumn(sqlite3* db,
                                                     const std::string& sql) {
  sqlite3_stmt* raw = nullptr;
  const int prepared = sqlite3_prepare_v2(db, sql.c_str(), -1, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, FinalizeStatement> statement(raw);
  if (prepared != SQLITE_OK) return Failure(prepared);
  std::vector<std::string> values;
  int result = sqlite3_step(raw);
  for (; result == SQLITE_ROW; result = sqlite3_step(raw)) {
    const unsigned char* text = sqlite3_column_text(raw, 0);
    values.emplace_back(text == nullptr ? ""
                                        : reinterpret_cast<const char*>(text));
  }
  if (result != SQLITE_DONE) return Failure(result);
  return values;
}

absl::StatusOr<std::vector<TableRows>> Check(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const Database db, Open(path, SQLITE_OPEN_READONLY));
  OPTFARM_ASSIGN_OR_RETURN(const auto found,
                           FirstColumn(db.get(), "PRAGMA integrity_check(1)"));
  if (found.size() != 1 || found[0] != "ok") {
    return absl::DataLossError(absl::StrCat(
        "it is damaged: ", found.empty() ? "no answer" : found[0]));
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto dangling,
                           FirstColumn(db.get(), "PRAGMA foreign_key_check"));
  if (!dangling.empty()) {
    return absl::DataLossError(absl::StrCat("rows of its table ", dangling[0],
                                            " refer to rows that are missing"));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const auto tables,
      FirstColumn(db.get(),
                  "SELECT name FROM sqlite_schema WHERE type = 'table' AND name"
                  " NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"));
  std::vector<TableRows> counts;
  for (const std::string& table : tables) {
    OPTFARM_ASSIGN_OR_RETURN(
        const auto rows,
        FirstColumn(db.get(),
                    absl::StrCat("SELECT COUNT(*) FROM \"", table, "\"")));
    TableRows& count = counts.emplace_back(TableRows{table, 0});
    if (rows.size() != 1 || !absl::SimpleAtoi(rows[0], &count.rows)) {
      return absl::InternalError(absl::StrCat("counting rows of ", table));
    }
  }
  return counts;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

absl::Status BackupSqlite(const std::string& source,
                          const std::string& target) {
  if (Exists(target)) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is already a file '", target, "'"));
  }
  FileSystem* files = PosixFileSystem();
  const std::string partial = absl::StrCat(target, ".partial");
  OPTFARM_RETURN_IF_ERROR(files->Remove(partial));
  absl::Status status = Copy(source, partial);
  if (status.ok()) status = files->Rename(partial, target);
  if (status.ok()) return files->SyncFolder(FolderOf(target));
  (void)files->Remove(partial);
  (void)files->Remove(absl::StrCat(partial, "-journal"));
  (void)files->Remove(absl::StrCat(partial, "-wal"));
  (void)files->Remove(absl::StrCat(partial, "-shm"));
  return status;
}

absl::StatusOr<std::vector<TableRows>> CheckSqliteFile(
    const std::string& path) {
  absl::StatusOr<std::vector<TableRows>> counts = Check(path);
  if (counts.ok()) return counts;
  return Annotate(counts.status(),
                  absl::StrCat("checking the database '", path, "'"));
}

absl::StatusOr<std::vector<std::string>> BlobsOfSqliteMetadata(
    const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(const Database db, Open(path, SQLITE_OPEN_READONLY));
  return FirstColumn(db.get(),
                     "SELECT sha256 FROM job_blobs UNION"
                     " SELECT sha256 FROM project_blobs ORDER BY 1");
}

}  // namespace optfarm::storage
