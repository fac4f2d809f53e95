#include "storage/sqlite/migrations.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

constexpr char kVersionTable[] =
    "CREATE TABLE IF NOT EXISTS schema_version ("
    "  version INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  applied_time INTEGER NOT NULL)";

absl::Status RunStep(SqliteDatabase& db, int version,
                     const SqliteMigration& step, absl::Time now) {
  SqlTransaction transaction(db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  OPTFARM_RETURN_IF_ERROR(db.Run(step.sql));
  if (step.code != nullptr) OPTFARM_RETURN_IF_ERROR(step.code(db));
  {
    SqlStatement insert =
        db.Prepare("INSERT INTO schema_version VALUES (?1, ?2, ?3)");
    insert.BindInt(1, version);
    insert.BindText(2, step.name);
    insert.BindTime(3, now);
    OPTFARM_RETURN_IF_ERROR(insert.Run());
  }
  {
    SqlStatement broken = db.Prepare("PRAGMA foreign_key_check");
    if (broken.Step()) {
      return absl::DataLossError(absl::StrCat(
          "a row of the table ", broken.Text(0), " refers to one of ",
          broken.Text(2), " that is not there; restore from a backup"));
    }
    OPTFARM_RETURN_IF_ERROR(broken.status());
  }
  return transaction.Commit();
}

}  // namespace

absl::StatusOr<int> SqliteSchemaVersion(SqliteDatabase& db) {
  OPTFARM_RETURN_IF_ERROR(db.Run(kVersionTable));
  SqlStatement query =
      db.Prepare("SELECT COALESCE(MAX(version), 0) FROM schema_version");
  query.Step();
  OPTFARM_RETURN_IF_ERROR(query.status());
  return static_cast<int>(query.Int(0));
}

absl::Status MigrateSqlite(SqliteDatabase& db,
                           absl::Span<const SqliteMigration> migrations,
                           absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(const int version, SqliteSchemaVersion(db));
  const int newest = static_cast<int>(migrations.size());
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has schema version ", version, " and this server knows ",
        newest,
        ": it was written by a newer server; run that one, or restore "
        "a backup made before the upgrade"));
  }
  if (version == newest) return absl::OkStatus();
  // A step may make a table anew that others refer to; what it leaves is
  // checked. Inside a transaction this would have no effect.
  OPTFARM_RETURN_IF_ERROR(db.Run("PRAGMA foreign_keys = OFF"));
  for (int next = version + 1; next <= newest; ++next) {
    const SqliteMigration& step = migrations[static_cast<size_t>(next - 1)];
    if (version > 0) {
      LogInfo("bringing the database to schema version ", next, " (", step.name,
              "); with millions of results that takes a while");
    }
    OPTFARM_RETURN_IF_ERROR(
        Annotate(RunStep(db, next, step, now),
                 absl::StrCat("bringing the database to schema version ", next,
                              " (", step.name, ")")));
  }
  return db.Run("PRAGMA foreign_keys = ON");
}

}  // namespace optfarm::storage
