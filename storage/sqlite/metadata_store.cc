#include "storage/sqlite/metadata_store.h"

#include <sqlite3.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/sqlite/backup.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"

namespace optfarm::storage {

namespace {

constexpr int kReaders = 4;

class SqliteMetadataStore final : public SqlMetadataStore {
 public:
  SqliteMetadataStore(std::string path, SqlConnections connections,
                      int64_t results_bytes)
      : SqlMetadataStore(std::move(connections), results_bytes),
        path_(std::move(path)) {}

  absl::Status Backup(const std::string& path) override {
    return BackupSqlite(path_, path);
  }

 private:
  // Moves all of the write-ahead log into the database and empties it. Where
  // somebody still reads an old state, a later turn does.
  void AfterPruning(SqlDatabase& reader) override {
    // All connections are what Open made.
    auto& db = static_cast<SqliteDatabase&>(reader);
    absl::Status status = db.Run("PRAGMA busy_timeout = 0");
    if (status.ok()) {
      db.Run("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
      status = db.Run("PRAGMA busy_timeout = 10000");
    }
    if (!status.ok()) LogWarning("shrinking the log: ", status.message());
  }

  const std::string path_;
};

// The check tells of a page that could not be read now in the words for damage;
// only the code in them says that the disk failed and not the database.
bool SaysThatReadingFailed(absl::string_view found) {
  // Of a list of free pages, without a code; the number of the page was right.
  if (absl::StrContains(found, "failed to get page")) return true;
  constexpr absl::string_view kCode = "error code=";
  const size_t at = found.find(kCode);
  if (at == absl::string_view::npos) return false;
  found.remove_prefix(at + kCode.size());
  int code = 0;
  const size_t digits = found.find_first_not_of("0123456789");
  return absl::SimpleAtoi(found.substr(0, digits), &code) &&
         (code & 0xff) == SQLITE_IOERR;
}

absl::Status CheckIntegrity(SqliteDatabase& db) {
  SqlStatement check = db.Prepare("PRAGMA quick_check(1)");
  if (!check.Step()) return check.status();
  const std::string found = check.Text(0);
  if (found == "ok") return absl::OkStatus();
  if (SaysThatReadingFailed(found)) {
    return absl::UnavailableError(
        absl::StrCat("the database cannot be read now (", found,
                     "); see that its disk works, and try again"));
  }
  return absl::DataLossError(absl::StrCat("the database is damaged (", found,
                                          "); restore it from a backup"));
}

absl::StatusOr<std::unique_ptr<MetadataStore>> Open(const std::string& path,
                                                    absl::Time now,
                                                    int64_t results_bytes) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> writer,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(CheckIntegrity(*writer));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*writer, AllSqliteMigrations(), now));
  SqlConnections connections;
  connections.writer = std::move(writer);
  for (int i = 0; i < kReaders; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(connections.readers.emplace_back(),
                             SqliteDatabase::Open(path));
  }
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> results_reader,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(results_reader->Run("PRAGMA cache_size = -65536"));
  connections.results_reader = std::move(results_reader);
  auto store = std::make_unique<SqliteMetadataStore>(
      path, std::move(connections), results_bytes);
  OPTFARM_RETURN_IF_ERROR(store->ReadIntoMemory());
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetadataStore>> OpenSqliteMetadataStore(
    const std::string& path, absl::Time now, int64_t results_bytes) {
  absl::StatusOr<std::unique_ptr<MetadataStore>> store =
      Open(path, now, results_bytes);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the database '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
