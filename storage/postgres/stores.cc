#include "storage/postgres/stores.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/postgres/connection.h"
#include "storage/postgres/database.h"
#include "storage/postgres/lease.h"
#include "storage/postgres/migrations.h"
#include "storage/sql/stores.h"

namespace optfarm::storage {
namespace {

constexpr int kReaders = 4;

class PostgresMetadataStore final : public SqlMetadataStore {
 public:
  PostgresMetadataStore(std::shared_ptr<PostgresLease> lease,
                        SqlConnections connections, int64_t results_bytes)
      : SqlMetadataStore(std::move(connections), results_bytes),
        lease_(std::move(lease)) {}

  absl::Status Backup(const std::string& path) override {
    return absl::FailedPreconditionError(
        "this server's database is PostgreSQL, which has tools of its own for "
        "backups: use pg_dump, or pg_basebackup with an archive of its log");
  }

 private:
  const std::shared_ptr<PostgresLease> lease_;
};

absl::Status Migrate(const std::string& uri, absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(const auto connection,
                           PostgresConnection::Connect(uri));
  return MigratePostgres(*connection, AllPostgresMigrations(), now);
}

absl::Status AnnotateOpening(const absl::Status& status,
                             const std::string& uri) {
  return Annotate(
      status, absl::StrCat("opening the database '", PostgresName(uri), "'"));
}

absl::StatusOr<PostgresStores> Open(PostgresOptions options, absl::Time now) {
  const auto database = [&](bool durable) {
    return std::make_unique<PostgresDatabase>(
        PostgresDatabaseOptions{options.uri, nullptr, durable});
  };
  std::shared_ptr<PostgresLease> lease = std::move(options.taken);
  if (lease == nullptr) {
    OPTFARM_RETURN_IF_ERROR(Migrate(options.uri, now));
    PostgresLease::Options wanted;
    wanted.uri = options.uri;
    wanted.holder = options.holder;
    wanted.length = options.lease;
    wanted.on_lost = std::move(options.on_lost);
    OPTFARM_ASSIGN_OR_RETURN(lease, PostgresLease::Take(std::move(wanted)));
  }
  SqlConnections connections;
  connections.writer = std::make_unique<PostgresDatabase>(
      PostgresDatabaseOptions{options.uri, lease->fence(), true});
  for (int i = 0; i < kReaders; ++i) {
    connections.readers.push_back(database(true));
  }
  connections.results_reader = database(true);
  // A leader of earlier does not write over what the next one found.
  auto tunes = std::make_unique<PostgresDatabase>(
      PostgresDatabaseOptions{options.uri, lease->fence(), true});
  auto store = std::make_unique<PostgresMetadataStore>(
      std::move(lease), std::move(connections), options.results_bytes);
  OPTFARM_RETURN_IF_ERROR(store->ReadIntoMemory());
  PostgresStores stores;
  stores.store = std::move(store);
  stores.tokens = MakeSqlTokenStore(database(true));
  stores.webhooks = MakeSqlWebhookStore(database(true));
  // A flush for every line would make each call wait for the disk.
  stores.audit = MakeSqlAuditStore(database(false));
  stores.tunes = MakeSqlTuneStore(std::move(tunes));
  return stores;
}

}  // namespace

bool IsPostgresUri(absl::string_view database) {
  return absl::StartsWith(database, "postgresql://") ||
         absl::StartsWith(database, "postgres://");
}

absl::Status PreparePostgres(const std::string& uri, absl::Time now) {
  return AnnotateOpening(Migrate(uri, now), uri);
}

absl::StatusOr<PostgresStores> OpenPostgresStores(PostgresOptions options,
                                                  absl::Time now) {
  const std::string uri = options.uri;
  absl::StatusOr<PostgresStores> stores = Open(std::move(options), now);
  if (!stores.ok()) return AnnotateOpening(stores.status(), uri);
  return stores;
}

}  // namespace optfarm::storage
