#include "storage/token_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/stores.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC). Bit n of `scopes` is the
// Access.Scope with number n.
constexpr char kTokens[] = R"sql(
CREATE TABLE tokens (
  token_number INTEGER PRIMARY KEY AUTOINCREMENT,
  token_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  secret_sha256 TEXT NOT NULL UNIQUE,
  scopes INTEGER NOT NULL,
  create_time INTEGER NOT NULL,
  expire_time INTEGER NOT NULL,
  revoke_time INTEGER
);
)sql";

constexpr char kProjects[] =
    "ALTER TABLE tokens ADD COLUMN project TEXT NOT NULL DEFAULT 'default'";

constexpr SqliteMigration kMigrations[] = {{"tokens", kTokens},
                                           {"projects of tokens", kProjects}};

absl::StatusOr<std::unique_ptr<TokenStore>> Open(const std::string& path,
                                                 absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  return MakeSqlTokenStore(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenStore>> OpenSqliteTokenStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<TokenStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the tokens '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
