// Which engine keeps the records, as the server's flags say.

#ifndef OPTFARM_SERVER_UPKEEP_DATABASE_ENGINE_H_
#define OPTFARM_SERVER_UPKEEP_DATABASE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/data_dir.h"
#include "storage/audit_store.h"
#include "storage/metadata_store.h"
#include "storage/postgres/lease.h"
#include "storage/token_store.h"
#include "storage/tune_store.h"
#include "storage/webhook_store.h"

namespace optfarm::server {

// As those of ServerOptions.
struct DatabaseEngineOptions {
  std::string database;
  int64_t results_bytes = 0;
  std::function<void(const std::string&)> on_database_lost;
  // Of a PostgreSQL database, when it was taken already; the callback is its
  // own then.
  std::shared_ptr<storage::PostgresLease> lease;
};

// "machine:process", for who asks which server has the database.
std::string ProcessName();

struct Databases {
  // SQLite's, of the metadata; empty with another engine.
  std::string database_file;
  std::unique_ptr<storage::MetadataStore> metadata;
  std::unique_ptr<storage::TokenStore> tokens;
  std::unique_ptr<storage::WebhookStore> webhooks;
  std::unique_ptr<storage::AuditStore> audit;
  std::unique_ptr<storage::TuneStore> tunes;
};

// Opens all of them, or makes them. ERRORS: InvalidArgument when `database`
// names no engine; those of the engines.
absl::StatusOr<Databases> OpenDatabases(DatabaseEngineOptions options,
                                        const DataDir& data_dir,
                                        absl::Time now);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_UPKEEP_DATABASE_ENGINE_H_
