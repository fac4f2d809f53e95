// The schema in PostgreSQL as numbered steps, of their own count. A database
// remembers which steps it has had; opening it runs the missing ones, all in
// one transaction, one server at a time. A step that has been released is never
// edited: changes are new steps.

#ifndef OPTFARM_STORAGE_POSTGRES_MIGRATIONS_H_
#define OPTFARM_STORAGE_POSTGRES_MIGRATIONS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "storage/postgres/connection.h"

namespace optfarm::storage {

// Step number i+1 stands at index i.
struct PostgresMigration {
  // What it is for, in a few words; kept in the database.
  const char* name;
  // Constant SQL, several statements.
  const char* sql;
  // What SQL cannot do, after it and in the same transaction; may be null.
  absl::Status (*code)(PostgresConnection& connection) = nullptr;
};

// All steps of this build, oldest first.
absl::Span<const PostgresMigration> AllPostgresMigrations();

// Brings the database to the version migrations.size(). `now` is stamped on the
// steps. ERRORS: FailedPrecondition when the database is newer than that
// (written by a newer server); those of PostgresConnection. A failed step
// leaves nothing behind.
absl::Status MigratePostgres(PostgresConnection& connection,
                             absl::Span<const PostgresMigration> migrations,
                             absl::Time now);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_MIGRATIONS_H_
