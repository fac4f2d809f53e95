// The database's schema as numbered steps. A database remembers which steps it
// has had; opening it runs the missing ones, each in a transaction of its own.
// A step that has been released is never edited: changes are new steps.

#ifndef OPTFARM_STORAGE_SQLITE_MIGRATIONS_H_
#define OPTFARM_STORAGE_SQLITE_MIGRATIONS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/sqlite/database.h"

namespace optfarm::storage {

// Step number i+1 stands at index i.
struct SqliteMigration {
  // What it is for, in a few words; kept in the database.
  const char* name;
  // Constant SQL, several statements.
  const char* sql;
  // What SQL cannot do, after it and in the same transaction; may be null.
  absl::Status (*code)(SqliteDatabase& db) = nullptr;
};

// All steps of this build, oldest first.
absl::Span<const SqliteMigration> AllSqliteMigrations();

// Brings `db` to the version migrations.size().
// ERRORS: FailedPrecondition when the database is newer than that (written by a
// newer server); those of SqliteDatabase. A failed step leaves nothing behind.
absl::Status MigrateSqlite(SqliteDatabase& db,
                           absl::Span<const SqliteMigration> migrations,
                           absl::Time now);

// The number of the last step that ran; 0 for an empty database.
absl::StatusOr<int> SqliteSchemaVersion(SqliteDatabase& db);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_SQLITE_MIGRATIONS_H_
