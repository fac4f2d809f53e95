// The steps of the schema, from the first release on.

#include "storage/sqlite/migrate_artifacts.h"
#include "storage/sqlite/migrate_measurements.h"
#include "storage/sqlite/migrations.h"

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

// docs/results.md explains these tables to those who ask in SQL.
constexpr char kResultsBySeries[] = R"sql(
CREATE TABLE series (
  series_id INTEGER PRIMARY KEY,
  model_name TEXT NOT NULL,        -- file name of the model the job was given
  recipe_name TEXT NOT NULL,
  device TEXT NOT NULL,
  variant TEXT NOT NULL,
  threads INTEGER NOT NULL,
  last_result_id INTEGER NOT NULL,
  UNIQUE (device, model_name, recipe_name, variant, threads)
);
CREATE INDEX series_by_model ON series(model_name);

CREATE TABLE graphs (
  graph_id INTEGER PRIMARY KEY,
  sha256 TEXT NOT NULL UNIQUE
);

CREATE TABLE environments (
  environment_id INTEGER PRIMARY KEY,
  build_version TEXT NOT NULL,     -- of the measuring program
  cpu_model TEXT NOT NULL,
  governor TEXT NOT NULL,
  os TEXT NOT NULL,
  kernel TEXT NOT NULL,
  UNIQUE (build_version, cpu_model, governor, os, kernel)
);

CREATE TABLE job_tags (
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  tag TEXT NOT NULL,
  PRIMARY KEY (job_id, tag)
) WITHOUT ROWID;

ALTER TABLE measurements RENAME TO measurements_of_version_2;
DROP INDEX measurements_by_job;
DROP INDEX measurements_by_model;
DROP INDEX measurements_by_measured;
DROP INDEX measurements_by_device;

CREATE TABLE measurements (
  result_id INTEGER PRIMARY KEY AUTOINCREMENT,
  series_id INTEGER NOT NULL REFERENCES series(series_id),
  job_id TEXT NOT NULL REFERENCES jobs(job_id),
  task_id TEXT NOT NULL REFERENCES tasks(task_id),
  create_time INTEGER NOT NULL,    -- never falls as result_id grows
  environment_id INTEGER NOT NULL REFERENCES environments(environment_id),
  model_id INTEGER NOT NULL REFERENCES graphs(graph_id),
  model_bytes INTEGER NOT NULL,
  measured_id INTEGER NOT NULL REFERENCES graphs(graph_id),
  runs INTEGER NOT NULL,
  noisy INTEGER NOT NULL,
  load_us REAL NOT NULL,
  first_us REAL NOT NULL,
  min_us REAL NOT NULL,
  median_us REAL NOT NULL,
  mean_us REAL NOT NULL,
  mad_us REAL NOT NULL,
  p90_us REAL NOT NULL,
  p99_us REAL NOT NULL,
  max_us REAL NOT NULL,
  peak_memory_bytes INTEGER NOT NULL,
  file_size_bytes INTEGER NOT NULL,
  measurement_proto BLOB NOT NULL  -- Measurement without samples and profile
);

CREATE TABLE samples (
  result_id INTEGER PRIMARY KEY REFERENCES measurements(result_id),
  encoding INTEGER NOT NULL,       -- 0 as it is, 1 zlib
  raw_bytes INTEGER NOT NULL,      -- before it was compressed
  raw_proto BLOB NOT NULL          -- Measurement: samples and profile only
);

CREATE TABLE result_tags (
  tag TEXT NOT NULL,
  series_id INTEGER NOT NULL,
  result_id INTEGER NOT NULL REFERENCES measurements(result_id),
  PRIMARY KEY (tag, series_id, result_id)
) WITHOUT ROWID;
CREATE INDEX result_tags_by_result ON result_tags(result_id);

INSERT INTO series (model_name, recipe_name, device, variant, threads,
                    last_result_id)
  SELECT model_name, recipe_name, device, variant, threads, MAX(result_id)
  FROM measurements_of_version_2
  GROUP BY model_name, recipe_name, device, variant, threads;
INSERT INTO graphs (sha256)
  SELECT model_sha256 FROM measurements_of_version_2 UNION
  SELECT measured_sha256 FROM measurements_of_version_2;
INSERT INTO environments VALUES (0, '', '', '', '', '');
INSERT INTO measurements
  SELECT result_id, series_id, job_id, task_id,
    MAX(create_time) OVER (ORDER BY result_id), 0,
    (SELECT graph_id FROM graphs WHERE sha256 = model_sha256), model_bytes,
    (SELECT graph_id FROM graphs WHERE sha256 = measured_sha256),
    0, 0, 0, 0, 0, median_us, 0, 0, 0, 0, 0, 0, 0, measurement_proto
  FROM measurements_of_version_2
  JOIN series USING (device, model_name, recipe_name, variant, threads);
INSERT INTO samples
  SELECT result_id, 0, LENGTH(raw_proto), raw_proto
  FROM measurements_of_version_2 WHERE LENGTH(raw_proto) > 0;
DROP TABLE measurements_of_version_2;
)sql";

// Once every row is complete: all that a series is judged by, in one place.
constexpr char kResultIndexes[] = R"sql(
CREATE INDEX measurements_by_series ON measurements(
  series_id, result_id, median_us, p90_us, peak_memory_bytes,
  file_size_bytes, noisy, model_id, measured_id);
CREATE INDEX measurements_by_job ON measurements(job_id);
CREATE INDEX measurements_by_model
  ON measurements(model_id, series_id, result_id);
CREATE INDEX measurements_by_measured
  ON measurements(measured_id, series_id, result_id);
CREATE INDEX jobs_by_end ON jobs(end_time);
CREATE INDEX events_with_logs ON events(job_id) WHERE is_log = 1;

-- What one would otherwise join by hand.
CREATE VIEW results AS
  SELECT m.result_id, m.create_time, m.job_id, s.device, s.model_name,
    s.recipe_name, s.variant, s.threads, source.sha256 AS model_sha256,
    graph.sha256 AS measured_sha256, m.runs, m.noisy, m.load_us, m.first_us,
    m.min_us, m.median_us, m.mean_us, m.mad_us, m.p90_us, m.p99_us, m.max_us,
    m.peak_memory_bytes, m.file_size_bytes, e.build_version, e.cpu_model,
    e.governor, e.os, e.kernel
  FROM measurements AS m
  JOIN series AS s USING (series_id)
  JOIN graphs AS source ON source.graph_id = m.model_id
  JOIN graphs AS graph ON graph.graph_id = m.measured_id
  JOIN environments AS e USING (environment_id);
)sql";

constexpr char kDeviceHealth[] = R"sql(
ALTER TABLE devices ADD COLUMN health_proto BLOB NOT NULL DEFAULT x'';
ALTER TABLE devices ADD COLUMN change_proto BLOB NOT NULL DEFAULT x'';
ALTER TABLE devices ADD COLUMN failures_in_a_row INTEGER NOT NULL DEFAULT 0;
ALTER TABLE devices ADD COLUMN quarantined_until INTEGER;
ALTER TABLE devices ADD COLUMN quarantine_reason TEXT NOT NULL DEFAULT '';
)sql";

// The bounds of a series' numbers: a question about a metric skips the series
// that cannot answer it. NULL: nothing was measured. They only widen: what
// retention deletes leaves them as they are.
constexpr char kSeriesBounds[] = R"sql(
ALTER TABLE series ADD COLUMN least_median_us REAL;
ALTER TABLE series ADD COLUMN most_median_us REAL;
ALTER TABLE series ADD COLUMN least_p90_us REAL;
ALTER TABLE series ADD COLUMN most_p90_us REAL;
ALTER TABLE series ADD COLUMN least_peak_memory_bytes INTEGER;
ALTER TABLE series ADD COLUMN most_peak_memory_bytes INTEGER;
ALTER TABLE series ADD COLUMN least_file_size_bytes INTEGER;
ALTER TABLE series ADD COLUMN most_file_size_bytes INTEGER;
UPDATE series SET (least_median_us, most_median_us, least_p90_us, most_p90_us,
  least_peak_memory_bytes, most_peak_memory_bytes, least_file_size_bytes,
  most_file_size_bytes) =
  (SELECT MIN(median_us), MAX(median_us), MIN(p90_us), MAX(p90_us),
     MIN(peak_memory_bytes), MAX(peak_memory_bytes), MIN(file_size_bytes),
     MAX(file_size_bytes)
   FROM measurements WHERE measurements.series_id = series.series_id);
)sql";

// A series is of one project, so that its table is made anew.
constexpr char kProjects[] = R"sql(
ALTER TABLE jobs ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
CREATE INDEX jobs_by_project ON jobs(project, create_time);
CREATE INDEX job_blobs_by_sha256 ON job_blobs(sha256);

CREATE TABLE project_blobs (
  project TEXT NOT NULL,           -- which brought the blob itself
  sha256 TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY (project, sha256)
) WITHOUT ROWID;

DROP VIEW results;
CREATE TABLE series_of_projects (
  series_id INTEGER PRIMARY KEY,
  model_name TEXT NOT NULL,        -- file name of the model the job was given
  recipe_name TEXT NOT NULL,
  device TEXT NOT NULL,
  variant TEXT NOT NULL,
  threads INTEGER NOT NULL,
  project TEXT NOT NULL,
  last_result_id INTEGER NOT NULL,
  least_median_us REAL,
  most_median_us REAL,
  least_p90_us REAL,
  most_p90_us REAL,
  least_peak_memory_bytes INTEGER,
  most_peak_memory_bytes INTEGER,
  least_file_size_bytes INTEGER,
  most_file_size_bytes INTEGER,
  UNIQUE (device, model_name, recipe_name, variant, threads, project)
);
INSERT INTO series_of_projects
  SELECT series_id, model_name, recipe_name, device, variant, threads,
    'default', last_result_id, least_median_us, most_median_us, least_p90_us,
    most_p90_us, least_peak_memory_bytes, most_peak_memory_bytes,
    least_file_size_bytes, most_file_size_bytes FROM series;
DROP TABLE series;
ALTER TABLE series_of_projects RENAME TO series;
CREATE INDEX series_by_model ON series(model_name);

CREATE VIEW results AS
  SELECT m.result_id, m.create_time, m.job_id, s.device, s.model_name,
    s.recipe_name, s.variant, s.threads, source.sha256 AS model_sha256,
    graph.sha256 AS measured_sha256, m.runs, m.noisy, m.load_us, m.first_us,
    m.min_us, m.median_us, m.mean_us, m.mad_us, m.p90_us, m.p99_us, m.max_us,
    m.peak_memory_bytes, m.file_size_bytes, e.build_version, e.cpu_model,
    e.governor, e.os, e.kernel, s.project
  FROM measurements AS m
  JOIN series AS s USING (series_id)
  JOIN graphs AS source ON source.graph_id = m.model_id
  JOIN graphs AS graph ON graph.graph_id = m.measured_id
  JOIN environments AS e USING (environment_id);
)sql";

// Means of many results are asked of their series, not of each.
constexpr char kSeriesSums[] = R"sql(
ALTER TABLE series ADD COLUMN results INTEGER NOT NULL DEFAULT 0;
ALTER TABLE series ADD COLUMN sum_median_us REAL NOT NULL DEFAULT 0;
ALTER TABLE series ADD COLUMN sum_p90_us REAL NOT NULL DEFAULT 0;
UPDATE series SET (results, sum_median_us, sum_p90_us) =
  (SELECT COUNT(*), TOTAL(median_us), TOTAL(p90_us)
   FROM measurements WHERE measurements.series_id = series.series_id);

CREATE TRIGGER results_leave_their_series AFTER DELETE ON measurements BEGIN
  UPDATE series SET results = results - 1,
    sum_median_us = sum_median_us - OLD.median_us,
    sum_p90_us = sum_p90_us - OLD.p90_us
  WHERE series_id = OLD.series_id;
END;
)sql";

// For those who ask in SQL; our own questions find a time by halving the ids.
constexpr char kResultsByTime[] = R"sql(
CREATE INDEX measurements_by_time ON measurements(create_time);
)sql";

// For retention: a task or job that goes is looked for in all that may refer
// to it.
constexpr char kReferences[] = R"sql(
CREATE INDEX measurements_by_task ON measurements(task_id);
CREATE INDEX action_cache_by_job ON action_cache(job_id);
)sql";

// How many results have gone: a copy of them in memory sees that it is to look
// which.
constexpr char kResultsGone[] = R"sql(
CREATE TABLE results_gone (
  results INTEGER NOT NULL         -- in the one row
);
INSERT INTO results_gone VALUES (0);

CREATE TRIGGER results_gone_are_counted AFTER DELETE ON measurements BEGIN
  UPDATE results_gone SET results = results + 1;
END;
)sql";

// What a history prints lies together too: read from their rows, the points of
// a series are on as many pages as there are points.
constexpr char kPointsBySeries[] = R"sql(
DROP INDEX measurements_by_series;
CREATE INDEX measurements_by_series ON measurements(
  series_id, result_id, median_us, p90_us, peak_memory_bytes,
  file_size_bytes, noisy, model_id, measured_id,
  create_time, environment_id, job_id);
)sql";

// What lists of jobs are asked for, for those who see one project and for those
// who see all. Entries of one key lie in the order of job_number.
constexpr char kJobsByFilters[] = R"sql(
CREATE INDEX jobs_by_recipe ON jobs(recipe_name);
CREATE INDEX jobs_by_name ON jobs(name);
CREATE INDEX jobs_by_model ON jobs(model_sha256);
CREATE INDEX jobs_by_model_name ON jobs(model_name);
CREATE INDEX jobs_of_project ON jobs(project);
CREATE INDEX jobs_of_project_by_state ON jobs(project, state);
CREATE INDEX jobs_of_project_by_recipe ON jobs(project, recipe_name);
CREATE INDEX jobs_of_project_by_name ON jobs(project, name);
)sql";

// The newest of each device are kept.
constexpr char kDeviceStates[] = R"sql(
CREATE TABLE device_states (
  number INTEGER PRIMARY KEY,
  device TEXT NOT NULL,
  state INTEGER NOT NULL,          -- number of optfarm.v1.Device.State
  reason TEXT NOT NULL,
  time INTEGER NOT NULL            -- when the device came into it
);
CREATE INDEX device_states_by_device ON device_states(device, number);
)sql";

// What jobs made counts for their project as well, and goes with them.
constexpr char kBlobsOfProjects[] = R"sql(
-- 1: only jobs of the project have made it; 0: the project brought it.
ALTER TABLE project_blobs ADD COLUMN made INTEGER NOT NULL DEFAULT 0;
CREATE INDEX project_blobs_by_size
  ON project_blobs(project, size_bytes, sha256);
CREATE INDEX project_blobs_by_sha256 ON project_blobs(sha256);

-- From some project: their bytes go when nobody has them any more.
CREATE TABLE removed_blobs (
  sha256 TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;
)sql";

constexpr SqliteMigration kMigrations[] = {
    {"jobs, tasks, events, reports, action cache", kJobsAndTasks},
    {"devices, participants, recipes, measurements", kFleetAndMeasurements},
    {"results by series, with tags, environments and samples apart",
     kResultsBySeries, CompleteMeasurementsOfVersion2},
    {"indexes and a view of results", kResultIndexes},
    {"how devices are", kDeviceHealth},
    {"bounds of each series", kSeriesBounds},
    {"projects", kProjects},
    {"sums of each series", kSeriesSums},
    {"results by time", kResultsByTime},
    {"measurements by task, answers from earlier work by job", kReferences},
    {"how many results have gone", kResultsGone},
    {"all of a point by its series", kPointsBySeries},
    {"jobs by what lists ask for", kJobsByFilters},
    {"states that devices were in", kDeviceStates},
    {"what jobs made counts for their projects", kBlobsOfProjects,
     CountArtifactsOfVersion14},
};

}  // namespace

absl::Span<const SqliteMigration> AllSqliteMigrations() { return kMigrations; }

}  // namespace optfarm::storage
