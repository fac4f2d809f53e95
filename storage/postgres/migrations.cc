#include "storage/postgres/migrations.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

// The number is ours alone: nothing else takes this lock. Who waits for another
// server's steps then finds them done.
constexpr char kBegin[] =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SET LOCAL lock_timeout = 600000;"
    "SET LOCAL statement_timeout = 0;"
    "SELECT pg_advisory_xact_lock(7215806642918153);"
    "CREATE TABLE IF NOT EXISTS schema_version ("
    "  version BIGINT PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  applied_time BIGINT NOT NULL)";
constexpr char kVersion[] =
    "SELECT COALESCE(MAX(version), 0) FROM schema_version";
constexpr char kNote[] = "INSERT INTO schema_version VALUES ($1, $2, $3)";

// A step may build an index over all results.
constexpr absl::Duration kLongest = absl::Hours(24);

absl::Status RunSteps(PostgresConnection& connection,
                      absl::Span<const PostgresMigration> migrations,
                      absl::Time now) {
  OPTFARM_RETURN_IF_ERROR(connection.Run(kBegin, kLongest).status());
  OPTFARM_ASSIGN_OR_RETURN(const PostgresResult found,
                           connection.Query(kVersion, {}, kLongest));
  const auto version = static_cast<size_t>(found.Int(0, 0));
  if (version > migrations.size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has schema version ", version, " and this server knows ",
        migrations.size(),
        ": it was written by a newer server; run that one, or restore "
        "a backup made before the upgrade"));
  }
  for (size_t i = version; i < migrations.size(); ++i) {
    const PostgresMigration& step = migrations[i];
    if (version > 0) {
      LogInfo("bringing the database to schema version ", i + 1, " (",
              step.name, "); with millions of results that takes a while");
    }
    OPTFARM_RETURN_IF_ERROR(
        Annotate(connection.Run(step.sql, kLongest).status(),
                 absl::StrCat("bringing the database to schema version ", i + 1,
                              " (", step.name, ")")));
    if (step.code != nullptr) OPTFARM_RETURN_IF_ERROR(step.code(connection));
    OPTFARM_RETURN_IF_ERROR(
        connection
            .Query(kNote,
                   {PostgresParameter::Int(static_cast<int64_t>(i + 1)),
                    PostgresParameter::Text(step.name),
                    PostgresParameter::Int(absl::ToUnixMicros(now))},
                   kLongest)
            .status());
  }
  return connection.Run("COMMIT", kLongest).status();
}

}  // namespace

absl::Status MigratePostgres(PostgresConnection& connection,
                             absl::Span<const PostgresMigration> migrations,
                             absl::Time now) {
  const absl::Status status = RunSteps(connection, migrations, now);
  // After an error the connection may be lost, and then nothing is left either.
  if (!status.ok()) {
    connection.Run("ROLLBACK", kLongest).status().IgnoreError();
  }
  return status;
}

}  // namespace optfarm::storage
