#include "storage/webhook_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/stores.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC).
constexpr char kWebhooks[] = R"sql(
CREATE TABLE webhooks (
  webhook_number INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL,
  failures INTEGER NOT NULL,
  next_time INTEGER,
  last_error TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  close_time INTEGER,              -- NULL: still to be delivered
  outcome TEXT NOT NULL
);
CREATE INDEX webhooks_open ON webhooks(close_time);
)sql";

constexpr SqliteMigration kMigrations[] = {{"webhooks", kWebhooks}};

absl::StatusOr<std::unique_ptr<WebhookStore>> Open(const std::string& path,
                                                   absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  return MakeSqlWebhookStore(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WebhookStore>> OpenSqliteWebhookStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<WebhookStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the webhooks '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
