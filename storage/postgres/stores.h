// All that a server keeps, but for blobs, in one PostgreSQL database.

#ifndef OPTFARM_STORAGE_POSTGRES_STORES_H_
#define OPTFARM_STORAGE_POSTGRES_STORES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "storage/audit_store.h"
#include "storage/metadata_store.h"
#include "storage/postgres/lease.h"
#include "storage/sql/metadata_store.h"
#include "storage/token_store.h"
#include "storage/tune_store.h"
#include "storage/webhook_store.h"

namespace optfarm::storage {

struct PostgresOptions {
  // What libpq takes: "postgresql://USER@HOST/DATABASE?passfile=FILE".
  std::string uri;
  // UNITS: bytes of memory for the numbers of results.
  int64_t results_bytes = kResultsBytes;
  // Who this server is, for people who ask who has the database.
  std::string holder;
  // How long a server that was killed keeps others out.
  absl::Duration lease = absl::Seconds(10);
  // Called once, from any thread, when the server can write no more because
  // another has taken over; it says why. It must not call back.
  std::function<void(const std::string&)> on_lost;
  // Taken already; then the schema is as it should be, and the three above are
  // its own. Null: it is taken, or waited for.
  std::shared_ptr<PostgresLease> taken;
};

struct PostgresStores {
  // Has the lease of the database, until it is destroyed.
  std::unique_ptr<MetadataStore> store;
  std::unique_ptr<TokenStore> tokens;
  std::unique_ptr<WebhookStore> webhooks;
  std::unique_ptr<AuditStore> audit;
  std::unique_ptr<TuneStore> tunes;
};

// Connects, brings the schema up to date, and takes the lease of the database.
// `now` is stamped on schema steps. ERRORS: FailedPrecondition when a newer
// server wrote the database, or another one works on it; Unavailable when it
// cannot be reached; InvalidArgument for a URI that is none.
absl::StatusOr<PostgresStores> OpenPostgresStores(PostgresOptions options,
                                                  absl::Time now);

// Brings the schema up to date: the first thing to do with a database. `now` as
// above. ERRORS: those of OpenPostgresStores.
absl::Status PreparePostgres(const std::string& uri, absl::Time now);

// Whether it is for OpenPostgresStores to open.
bool IsPostgresUri(absl::string_view database);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_POSTGRES_STORES_H_
