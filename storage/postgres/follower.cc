#include "storage/postgres/follower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "storage/postgres/database.h"
#include "storage/postgres/migrations.h"
#include "storage/sql/measurement_reads.h"
#include "storage/sql/run.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);
// Questions at once; others wait.
constexpr int kReaders = 4;

// Sums are the same in any order of the rows.
constexpr char kMark[] =
    "SELECT (SELECT COALESCE(MAX(version), 0) FROM schema_version),"
    " CONCAT(COUNT(*), ' ', SUM(HASHTEXTEXTENDED("
    "CONCAT(token_id, ' ', revoke_time), 0)))"
    " FROM tokens";

std::unique_ptr<SqlDatabase> ImpatientDatabase(const std::string& uri) {
  PostgresDatabaseOptions options;
  options.uri = uri;
  options.patience = kPatience;
  return std::make_unique<PostgresDatabase>(std::move(options));
}

std::vector<std::unique_ptr<SqlDatabase>> Readers(const std::string& uri) {
  std::vector<std::unique_ptr<SqlDatabase>> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.push_back(ImpatientDatabase(uri));
  }
  return readers;
}

}  // namespace

TokenWatch::TokenWatch(const std::string& uri)
    : uri_(uri), tokens_(MakeSqlTokenStore(ImpatientDatabase(uri))) {}

absl::StatusOr<std::string> TokenWatch::Mark() {
  if (connection_ == nullptr || connection_->lost()) {
    connection_.reset();
    OPTFARM_ASSIGN_OR_RETURN(connection_, PostgresConnection::Connect(uri_));
  }
  OPTFARM_ASSIGN_OR_RETURN(const PostgresResult row,
                           connection_->Query(kMark, {}, kPatience));
  const int64_t known = static_cast<int64_t>(AllPostgresMigrations().size());
  if (row.Int(0, 0) != known) {
    return absl::FailedPreconditionError(
        absl::StrCat("the schema of the database is at step ", row.Int(0, 0),
                     ", and this server knows ", known));
  }
  return row.Text(0, 1);
}

PostgresResultReader::PostgresResultReader(const std::string& uri)
    : readers_(Readers(uri)) {}

absl::StatusOr<std::vector<MeasurementRecord>>
PostgresResultReader::QueryMeasurements(const MeasurementFilter& filter,
                                        const PageRequest& page) {
  SqlReaders::Turn turn(readers_);
  SqlDatabase& db = turn.db();
  // A connection that ended while nobody used it is made anew.
  return RunInTransaction(
      db, SqlTransaction::Mode::kRead,
      [&] { return sql::QueryMeasurements(db, nullptr, filter, page); },
      /*runs=*/2);
}

}  // namespace optfarm::storage
