#include "storage/postgres/follower.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "storage/postgres/database.h"
#include "storage/postgres/fence.h"
#include "storage/postgres/migrations.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);
// Questions about jobs at once; others wait.
constexpr int kReaders = 2;

// Sums are the same in any order of the rows.
constexpr char kMark[] =
    "SELECT (SELECT COALESCE(MAX(version), 0) FROM schema_version),"
    " CONCAT(COUNT(*), ' ', SUM(HASHTEXTEXTENDED("
    "CONCAT(token_id, ' ', revoke_time), 0)))"
    " FROM tokens";

std::unique_ptr<SqlDatabase> ImpatientDatabase(
    const std::string& uri, std::shared_ptr<PostgresFence> fence = nullptr) {
  PostgresDatabaseOptions options;
  options.uri = uri;
  options.fence = std::move(fence);
  options.patience = kPatience;
  return std::make_unique<PostgresDatabase>(std::move(options));
}

SqlConnections ConnectionsTo(const std::string& uri) {
  SqlConnections connections;
  // Of no term: nothing is ever written.
  auto fence = std::make_shared<PostgresFence>(0, nullptr);
  fence->Lose("it stands by").IgnoreError();
  connections.writer = ImpatientDatabase(uri, std::move(fence));
  for (int i = 0; i < kReaders; ++i) {
    connections.readers.push_back(ImpatientDatabase(uri));
  }
  connections.results_reader = ImpatientDatabase(uri);
  return connections;
}

class PostgresFollower final : public SqlMetadataStore {
 public:
  PostgresFollower(const std::string& uri, int64_t results_bytes)
      : SqlMetadataStore(ConnectionsTo(uri), results_bytes) {}

  absl::Status Backup(const std::string&) override {
    return absl::UnavailableError("a server that stands by makes no backups");
  }
};

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

std::unique_ptr<SqlMetadataStore> FollowPostgres(const std::string& uri,
                                                 int64_t results_bytes) {
  return std::make_unique<PostgresFollower>(uri, results_bytes);
}

}  // namespace optfarm::storage
