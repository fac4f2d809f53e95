#include "storage/audit_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/stores.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC).
constexpr char kAudit[] = R"sql(
CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  actor TEXT NOT NULL,
  token_id TEXT NOT NULL,
  project TEXT NOT NULL,
  peer TEXT NOT NULL,
  method TEXT NOT NULL,
  subject TEXT NOT NULL,
  outcome TEXT NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit(time);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log is not changed'); END;
CREATE TRIGGER audit_keeps_what_is_young BEFORE DELETE ON audit
  WHEN OLD.time > (strftime('%s', 'now') - 86400) * 1000000
  BEGIN SELECT RAISE(ABORT, 'the audit log keeps what is young'); END;
)sql";

constexpr SqliteMigration kMigrations[] = {{"audit log", kAudit}};

absl::StatusOr<std::unique_ptr<AuditStore>> Open(const std::string& path,
                                                 absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  // A flush for every line would make each call wait for the disk.
  OPTFARM_RETURN_IF_ERROR(db->Run("PRAGMA synchronous = NORMAL"));
  return MakeSqlAuditStore(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditStore>> OpenSqliteAuditStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<AuditStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the audit log '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
