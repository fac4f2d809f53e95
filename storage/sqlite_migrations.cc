#include "storage/sqlite_migrations.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::storage {
namespace {

// Times are microseconds since 1970 (UTC), NULL when unset. States and kinds
// are the numbers of the optfarm.v1 enums. A column called *_proto holds a
// serialized optfarm.v1 message, named in the comment.
constexpr char kJobsAndTasks[] = R"sql(
CREATE TABLE jobs (
  job_number INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL UNIQUE,
  client_request_id TEXT UNIQUE,
  spec_digest TEXT NOT NULL,
  state INTEGER NOT NULL,
  name TEXT NOT NULL,
  recipe_name TEXT NOT NULL,
  model_sha256 TEXT NOT NULL,
  model_name TEXT NOT NULL,
  create_time INTEGER NOT NULL,
  start_time INTEGER,
  end_time INTEGER,
  from_cache INTEGER NOT NULL,
  cached_from_job_id TEXT NOT NULL,
  spec_proto BLOB NOT NULL,        -- JobSpec without calibration files
  calibration_proto BLOB NOT NULL, -- Dataset
  outcome_proto BLOB NOT NULL      -- Job with failure and gates only
);
CREATE INDEX jobs_by_state ON jobs(state);

CREATE TABLE tasks (
  task_id TEXT NOT NULL PRIMARY KEY,
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  ordinal INTEGER NOT NULL,        -- place within its job
  kind INTEGER NOT NULL,
  state INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  accepted_attempt INTEGER NOT NULL,
  failed_attempts INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  device TEXT NOT NULL,
  holder TEXT NOT NULL,
  participant_id TEXT NOT NULL,
  lease_deadline INTEGER,
  not_before INTEGER,
  ready_time INTEGER,
  attempt_start_time INTEGER,
  create_time INTEGER NOT NULL,
  start_time INTEGER,
  end_time INTEGER,
  progress REAL NOT NULL,
  details_proto BLOB NOT NULL      -- Task: progress_message, failure, artifacts
);
CREATE INDEX tasks_by_job ON tasks(job_id, ordinal);
CREATE INDEX tasks_by_device ON tasks(device, job_id);

CREATE TABLE attempts (
  task_id TEXT NOT NULL REFERENCES tasks(task_id),
  attempt INTEGER NOT NULL,
  holder TEXT NOT NULL,
  participant_id TEXT NOT NULL,
  start_time INTEGER NOT NULL,
  end_time INTEGER,
  outcome TEXT NOT NULL,           -- "running", "done", "failed", ...
  message TEXT NOT NULL,
  PRIMARY KEY (task_id, attempt)
) WITHOUT ROWID;

CREATE TABLE events (
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  sequence INTEGER NOT NULL,       -- 1, 2, ... without gaps
  is_log INTEGER NOT NULL,
  event_proto BLOB NOT NULL,       -- JobEvent without sequence
  PRIMARY KEY (job_id, sequence)
);

CREATE TABLE job_blobs (
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  sha256 TEXT NOT NULL,
  PRIMARY KEY (job_id, sha256)
) WITHOUT ROWID;

CREATE TABLE reports (
  job_id TEXT NOT NULL PRIMARY KEY REFERENCES jobs(job_id),
  report_proto BLOB NOT NULL       -- Report
);

CREATE TABLE action_cache (
  action_digest TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  create_time INTEGER NOT NULL,
  PRIMARY KEY (action_digest, tool_version)
) WITHOUT ROWID;
)sql";

constexpr char kFleetAndMeasurements[] = R"sql(
CREATE TABLE devices (
  name TEXT NOT NULL PRIMARY KEY,
  agent TEXT NOT NULL,
  participant_id TEXT NOT NULL,
  ready INTEGER NOT NULL,
  disabled INTEGER NOT NULL,
  reason TEXT NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  info_proto BLOB NOT NULL         -- DeviceInfo
) WITHOUT ROWID;

CREATE TABLE participants (
  participant_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  build_version TEXT NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE recipes (
  name TEXT NOT NULL PRIMARY KEY,
  offered_by TEXT NOT NULL,        -- build version of the worker
  recipe_proto BLOB NOT NULL       -- Recipe
) WITHOUT ROWID;

CREATE TABLE measurements (
  result_id INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  task_id TEXT NOT NULL REFERENCES tasks(task_id),
  create_time INTEGER NOT NULL,
  recipe_name TEXT NOT NULL,
  model_sha256 TEXT NOT NULL,      -- of the model the job was given
  model_name TEXT NOT NULL,
  model_bytes INTEGER NOT NULL,
  measured_sha256 TEXT NOT NULL,   -- of the graph that was measured
  device TEXT NOT NULL,
  variant TEXT NOT NULL,
  threads INTEGER NOT NULL,
  median_us REAL NOT NULL,
  measurement_proto BLOB NOT NULL, -- Measurement without samples and profile
  raw_proto BLOB NOT NULL          -- Measurement: samples and profile only
);
CREATE INDEX measurements_by_job ON measurements(job_id);
CREATE INDEX measurements_by_model ON measurements(model_sha256, result_id);
CREATE INDEX measurements_by_measured
  ON measurements(measured_sha256, result_id);
CREATE INDEX measurements_by_device ON measurements(device, result_id);
)sql";

constexpr SqliteMigration kMigrations[] = {
    {"jobs, tasks, events, reports, action cache", kJobsAndTasks},
    {"devices, participants, recipes, measurements", kFleetAndMeasurements},
};

constexpr char kVersionTable[] =
    "CREATE TABLE IF NOT EXISTS schema_version ("
    "  version INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  applied_time INTEGER NOT NULL)";

absl::Status RunStep(SqliteDatabase& db, int version,
                     const SqliteMigration& step, absl::Time now) {
  SqliteTransaction transaction(db);
  OPTFARM_RETURN_IF_ERROR(transaction.status());
  OPTFARM_RETURN_IF_ERROR(db.Run(step.sql));
  {
    SqliteStatement insert =
        db.Prepare("INSERT INTO schema_version VALUES (?1, ?2, ?3)");
    insert.BindInt(1, version);
    insert.BindText(2, step.name);
    insert.BindTime(3, now);
    OPTFARM_RETURN_IF_ERROR(insert.Run());
  }
  return transaction.Commit();
}

}  // namespace

absl::Span<const SqliteMigration> AllSqliteMigrations() { return kMigrations; }

absl::StatusOr<int> SqliteSchemaVersion(SqliteDatabase& db) {
  OPTFARM_RETURN_IF_ERROR(db.Run(kVersionTable));
  SqliteStatement query =
      db.Prepare("SELECT COALESCE(MAX(version), 0) FROM schema_version");
  query.Step();
  OPTFARM_RETURN_IF_ERROR(query.status());
  return static_cast<int>(query.Int(0));
}

absl::Status MigrateSqlite(SqliteDatabase& db,
                           absl::Span<const SqliteMigration> migrations,
                           absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(const int version, SqliteSchemaVersion(db));
  const int newest = static_cast<int>(migrations.size());
  if (version > newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database has schema version ", version, " and this server knows ",
        newest,
        ": it was written by a newer server; run that one, or restore "
        "a backup made before the upgrade"));
  }
  for (int next = version + 1; next <= newest; ++next) {
    const SqliteMigration& step = migrations[static_cast<size_t>(next - 1)];
    OPTFARM_RETURN_IF_ERROR(
        Annotate(RunStep(db, next, step, now),
                 absl::StrCat("bringing the database to schema version ", next,
                              " (", step.name, ")")));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::storage
