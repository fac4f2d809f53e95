#include "server/upkeep/database_engine.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/postgres/catalog.h"
#include "storage/postgres/database.h"
#include "storage/postgres/stores.h"
#include "storage/sql/table_copy.h"
#include "storage/sqlite/catalog.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/metadata_store.h"

namespace optfarm::server {
namespace {

// What is still to come would be lost.
absl::Status CheckNotUnfinished(storage::SqlDatabase& db,
                                const storage::SqlCatalog& catalog) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string source,
                           storage::UnfinishedCopyOf({&db, &catalog}));
  if (source.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the database holds an unfinished migration from ", source,
                   "; run the same optctl migrate command again to finish it"));
}

absl::StatusOr<Databases> OpenSqlite(std::string file, int64_t results_bytes,
                                     const DataDir& data_dir, absl::Time now) {
  Databases databases;
  OPTFARM_ASSIGN_OR_RETURN(databases.metadata, storage::OpenSqliteMetadataStore(
                                                   file, now, results_bytes));
  {
    OPTFARM_ASSIGN_OR_RETURN(const auto db,
                             storage::SqliteDatabase::Open(file));
    OPTFARM_RETURN_IF_ERROR(CheckNotUnfinished(*db, storage::SqliteCatalog()));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      databases.tokens, storage::OpenSqliteTokenStore(data_dir.tokens(), now));
  OPTFARM_ASSIGN_OR_RETURN(databases.webhooks, storage::OpenSqliteWebhookStore(
                                                   data_dir.webhooks(), now));
  OPTFARM_ASSIGN_OR_RETURN(
      databases.audit, storage::OpenSqliteAuditStore(data_dir.audit(), now));
  OPTFARM_ASSIGN_OR_RETURN(databases.tunes,
                           storage::OpenSqliteTuneStore(data_dir.tunes(), now));
  databases.database_file = std::move(file);
  return databases;
}

absl::StatusOr<Databases> OpenPostgres(DatabaseEngineOptions options,
                                       absl::Time now) {
  const std::string uri = options.database;
  storage::PostgresOptions database;
  database.uri = std::move(options.database);
  database.results_bytes = options.results_bytes;
  database.holder = ProcessName();
  database.taken = std::move(options.lease);
  database.on_lost = std::move(options.on_database_lost);
  OPTFARM_ASSIGN_OR_RETURN(
      storage::PostgresStores opened,
      storage::OpenPostgresStores(std::move(database), now));
  storage::PostgresDatabase db({uri, nullptr, true});
  OPTFARM_RETURN_IF_ERROR(CheckNotUnfinished(db, storage::PostgresCatalog()));
  Databases databases;
  databases.metadata = std::move(opened.store);
  databases.tokens = std::move(opened.tokens);
  databases.webhooks = std::move(opened.webhooks);
  databases.audit = std::move(opened.audit);
  databases.tunes = std::move(opened.tunes);
  return databases;
}

}  // namespace

std::string ProcessName() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, ":", getpid());
}

absl::StatusOr<Databases> OpenDatabases(DatabaseEngineOptions options,
                                        const DataDir& data_dir,
                                        absl::Time now) {
  constexpr absl::string_view kSqlite = "sqlite:";
  if (storage::IsPostgresUri(options.database)) {
    return OpenPostgres(std::move(options), now);
  }
  std::string file = data_dir.database();
  if (absl::StartsWith(options.database, kSqlite)) {
    file = options.database.substr(kSqlite.size());
  } else if (!options.database.empty()) {
    // Not said: it may have a password.
    return absl::InvalidArgumentError(
        "--database names no engine; give postgresql://USER@HOST/DATABASE, "
        "sqlite:PATH, or nothing for SQLite in the data folder");
  }
  return OpenSqlite(std::move(file), options.results_bytes, data_dir, now);
}

}  // namespace optfarm::server
