#include "storage/tune_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/stores.h"
#include "storage/sqlite/database.h"
#include "storage/sqlite/migrations.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC).
constexpr char kTunes[] = R"sql(
CREATE TABLE tunes (
  tune_number INTEGER PRIMARY KEY AUTOINCREMENT,
  tune_id TEXT NOT NULL UNIQUE,
  project TEXT NOT NULL,
  client_request_id TEXT UNIQUE,   -- NULL: none was given
  spec_digest TEXT NOT NULL,
  token_id TEXT NOT NULL,
  scopes INTEGER NOT NULL,
  finish_round INTEGER NOT NULL,
  spec BLOB NOT NULL,              -- optfarm.v1.TuneSpec
  tune BLOB NOT NULL,              -- optfarm.v1.Tune
  end_time INTEGER                 -- NULL: it runs
);
CREATE INDEX tunes_by_project ON tunes(project, tune_number);
CREATE INDEX tunes_by_end ON tunes(end_time);
)sql";

// What steps took, by kind of machine.
constexpr char kStepTimes[] = R"sql(
CREATE TABLE step_times (
  machine TEXT NOT NULL,
  key TEXT NOT NULL,               -- optfarm.v1.StepWork, as what follows
  op TEXT NOT NULL,
  multiply_adds REAL NOT NULL,
  input_bytes INTEGER NOT NULL,
  weight_bytes INTEGER NOT NULL,
  output_bytes INTEGER NOT NULL,
  median_us REAL NOT NULL,
  times INTEGER NOT NULL,          -- measured so often
  update_time INTEGER NOT NULL,
  PRIMARY KEY (machine, key)
) WITHOUT ROWID;
CREATE INDEX step_times_by_time ON step_times(update_time);
ALTER TABLE tunes ADD COLUMN measured_rounds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tunes ADD COLUMN known_steps BLOB;  -- optfarm.v1.BenchmarkResult
)sql";

constexpr SqliteMigration kMigrations[] = {
    {"tunes", kTunes},
    {"what steps took", kStepTimes},
};

absl::StatusOr<std::unique_ptr<TuneStore>> Open(const std::string& path,
                                                absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<SqliteDatabase> db,
                           SqliteDatabase::Open(path));
  OPTFARM_RETURN_IF_ERROR(MigrateSqlite(*db, kMigrations, now));
  return MakeSqlTuneStore(std::move(db));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuneStore>> OpenSqliteTuneStore(
    const std::string& path, absl::Time now) {
  absl::StatusOr<std::unique_ptr<TuneStore>> store = Open(path, now);
  if (!store.ok()) {
    return Annotate(store.status(),
                    absl::StrCat("opening the tunes '", path, "'"));
  }
  return store;
}

}  // namespace optfarm::storage
