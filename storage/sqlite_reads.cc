#include "storage/sqlite_reads.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::storage::sqlite {
namespace {

template <typename Message>
absl::StatusOr<Message> ParseRow(const std::string& bytes,
                                 absl::string_view what) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return absl::DataLossError(absl::StrCat("the database holds a damaged ", what,
                                          "; restore it from a backup"));
}

absl::StatusOr<JobRecord> ReadJobRow(const SqliteStatement& row) {
  JobRecord job;
  job.number = row.Int(0);
  job.job_id = row.Text(1);
  job.client_request_id = row.Text(2);
  job.spec_digest = row.Text(3);
  job.state = static_cast<v1::JobState>(row.Int(4));
  job.create_time = row.Time(5);
  job.start_time = row.Time(6);
  job.end_time = row.Time(7);
  job.from_cache = row.Int(8) != 0;
  job.cached_from_job_id = row.Text(9);
  OPTFARM_ASSIGN_OR_RETURN(job.spec,
                           ParseRow<v1::JobSpec>(row.Text(10), "job"));
  OPTFARM_ASSIGN_OR_RETURN(v1::Job outcome,
                           ParseRow<v1::Job>(row.Text(11), "job outcome"));
  job.project = row.Text(12);
  if (outcome.has_failure()) job.failure = outcome.failure();
  job.gates.assign(outcome.gates().begin(), outcome.gates().end());
  return job;
}

absl::StatusOr<TaskRecord> ReadTaskRow(const SqliteStatement& row) {
  TaskRecord task;
  task.task_id = row.Text(0);
  task.job_id = row.Text(1);
  task.ordinal = static_cast<int>(row.Int(2));
  task.kind = static_cast<v1::TaskKind>(row.Int(3));
  task.state = static_cast<v1::TaskState>(row.Int(4));
  task.attempt = static_cast<int>(row.Int(5));
  task.accepted_attempt = static_cast<int>(row.Int(6));
  task.failed_attempts = static_cast<int>(row.Int(7));
  task.max_attempts = static_cast<int>(row.Int(8));
  task.device = row.Text(9);
  task.holder = row.Text(10);
  task.participant_id = row.Text(11);
  task.lease_deadline = row.Time(12);
  task.not_before = row.Time(13);
  task.ready_time = row.Time(14);
  task.attempt_start_time = row.Time(15);
  task.create_time = row.Time(16);
  task.start_time = row.Time(17);
  task.end_time = row.Time(18);
  task.progress = row.Double(19);
  OPTFARM_ASSIGN_OR_RETURN(v1::Task details,
                           ParseRow<v1::Task>(row.Text(20), "task"));
  task.progress_message = details.progress_message();
  if (details.has_failure()) task.failure = details.failure();
  task.artifacts.assign(details.artifacts().begin(), details.artifacts().end());
  return task;
}

constexpr char kTasksOfJob[] =
    "SELECT task_id, job_id, ordinal, kind, state, attempt, accepted_attempt,"
    " failed_attempts, max_attempts, device, holder, participant_id,"
    " lease_deadline, not_before, ready_time, attempt_start_time, create_time,"
    " start_time, end_time, progress, details_proto"
    " FROM tasks WHERE job_id = ?1 ORDER BY ordinal";

// Adds tasks and the last event's number to a job that has been read.
absl::Status ReadTasksAndSequence(SqliteDatabase& db, StoredJob& job) {
  SqliteStatement tasks = db.Prepare(kTasksOfJob);
  tasks.BindText(1, job.job.job_id);
  while (tasks.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(TaskRecord task, ReadTaskRow(tasks));
    job.tasks.push_back(std::move(task));
  }
  OPTFARM_RETURN_IF_ERROR(tasks.status());
  SqliteStatement last = db.Prepare(
      "SELECT COALESCE(MAX(sequence), 0) FROM events WHERE job_id = ?1");
  last.BindText(1, job.job.job_id);
  if (last.Step()) job.last_event_sequence = last.Int(0);
  return last.status();
}

absl::Status ReadCalibration(SqliteDatabase& db, JobRecord& job) {
  SqliteStatement query =
      db.Prepare("SELECT calibration_proto FROM jobs WHERE job_id = ?1");
  query.BindText(1, job.job_id);
  if (query.Step() && !query.Text(0).empty()) {
    OPTFARM_ASSIGN_OR_RETURN(
        *job.spec.mutable_calibration(),
        ParseRow<v1::Dataset>(query.Text(0), "calibration data list"));
  }
  return query.status();
}

// Reads the rows of a jobs query, then each job's tasks.
absl::StatusOr<std::vector<StoredJob>> ReadJobs(SqliteDatabase& db,
                                                SqliteStatement& query) {
  std::vector<StoredJob> jobs;
  while (query.Step()) {
    StoredJob job;
    OPTFARM_ASSIGN_OR_RETURN(job.job, ReadJobRow(query));
    jobs.push_back(std::move(job));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  for (StoredJob& job : jobs) {
    OPTFARM_RETURN_IF_ERROR(ReadTasksAndSequence(db, job));
  }
  return jobs;
}

void BindOptional(SqliteStatement& statement, int parameter,
                  const std::optional<std::string>& value) {
  if (value.has_value()) {
    statement.BindText(parameter, *value);
  } else {
    statement.BindNull(parameter);
  }
}

// Binds three parameters: lowest and first too high SHA-256, and file name; all
// NULL without a filter. 'g' sorts after every hex digit.
void BindModel(SqliteStatement& statement, int first,
               const std::optional<ModelFilter>& model) {
  if (!model.has_value()) return;
  const std::string& prefix = model->sha256_prefix;
  statement.BindText(first, prefix.empty() ? "~" : prefix);
  statement.BindText(first + 1, prefix.empty() ? "~" : prefix + "g");
  statement.BindText(first + 2, model->file_name);
}

}  // namespace

absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
    SqliteDatabase& db, const std::string& client_request_id) {
  SqliteStatement query = db.Prepare(
      "SELECT job_id, spec_digest FROM jobs WHERE client_request_id = ?1");
  query.BindText(1, client_request_id);
  std::optional<RequestMatch> match;
  if (query.Step()) match = RequestMatch{query.Text(0), query.Text(1)};
  OPTFARM_RETURN_IF_ERROR(query.status());
  return match;
}

absl::StatusOr<StoredJob> GetJob(SqliteDatabase& db,
                                 const std::string& job_id) {
  SqliteStatement query = db.Prepare(
      "SELECT job_number, job_id, client_request_id, spec_digest, state,"
      " create_time, start_time, end_time, from_cache, cached_from_job_id,"
      " spec_proto, outcome_proto, project FROM jobs WHERE job_id = ?1");
  query.BindText(1, job_id);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, ReadJobs(db, query));
  if (jobs.empty()) {
    return NoSuchJob(job_id);
  }
  OPTFARM_RETURN_IF_ERROR(ReadCalibration(db, jobs[0].job));
  return std::move(jobs[0]);
}

absl::StatusOr<TaskRecord> GetTask(SqliteDatabase& db,
                                   const std::string& task_id) {
  SqliteStatement query = db.Prepare(
      "SELECT task_id, job_id, ordinal, kind, state, attempt,"
      " accepted_attempt, failed_attempts, max_attempts, device, holder,"
      " participant_id, lease_deadline, not_before, ready_time,"
      " attempt_start_time, create_time, start_time, end_time, progress,"
      " details_proto FROM tasks WHERE task_id = ?1");
  query.BindText(1, task_id);
  if (query.Step()) return ReadTaskRow(query);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return absl::NotFoundError(absl::StrCat(
      "there is no task '", absl::CHexEscape(task_id.substr(0, 100)), "'"));
}

absl::StatusOr<std::vector<StoredJob>> ListJobs(SqliteDatabase& db,
                                                const JobFilter& filter,
                                                const PageRequest& page) {
  SqliteStatement query = db.Prepare(
      "SELECT job_number, job_id, client_request_id, spec_digest, state,"
      " create_time, start_time, end_time, from_cache, cached_from_job_id,"
      " spec_proto, outcome_proto, project FROM jobs"
      " WHERE (?1 = 0 OR job_number < ?1)"
      " AND (?2 IS NULL OR state = ?2)"
      " AND (?3 IS NULL OR recipe_name = ?3)"
      " AND (?4 IS NULL OR name = ?4)"
      " AND (?5 IS NULL OR EXISTS (SELECT 1 FROM tasks WHERE"
      "      tasks.job_id = jobs.job_id AND tasks.device = ?5))"
      " AND (?6 IS NULL OR (model_sha256 >= ?6 AND model_sha256 < ?7)"
      "      OR (model_name = ?8 AND model_name <> ''))"
      " AND (?10 IS NULL OR project = ?10)"
      " ORDER BY job_number DESC LIMIT ?9");
  query.BindInt(1, page.before);
  if (filter.state.has_value()) query.BindInt(2, *filter.state);
  BindOptional(query, 3, filter.recipe_name);
  BindOptional(query, 4, filter.name);
  BindOptional(query, 5, filter.device);
  BindModel(query, 6, filter.model);
  query.BindInt(9, page.limit);
  BindOptional(query, 10, filter.project);
  return ReadJobs(db, query);
}

absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs(SqliteDatabase& db) {
  // QUEUED = 1, RUNNING = 2.
  SqliteStatement query = db.Prepare(
      "SELECT job_number, job_id, client_request_id, spec_digest, state,"
      " create_time, start_time, end_time, from_cache, cached_from_job_id,"
      " spec_proto, outcome_proto, project FROM jobs WHERE state IN (1, 2)"
      " ORDER BY job_number");
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, ReadJobs(db, query));
  for (StoredJob& job : jobs) {
    OPTFARM_RETURN_IF_ERROR(ReadCalibration(db, job.job));
  }
  return jobs;
}

absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqliteDatabase& db,
                                                     const std::string& job_id,
                                                     int64_t after_sequence,
                                                     int limit,
                                                     bool with_logs) {
  SqliteStatement query = db.Prepare(
      "SELECT sequence, event_proto FROM events WHERE job_id = ?1"
      " AND sequence > ?2 AND (?3 OR is_log = 0) ORDER BY sequence LIMIT ?4");
  query.BindText(1, job_id);
  query.BindInt(2, after_sequence);
  query.BindInt(3, with_logs ? 1 : 0);
  query.BindInt(4, limit);
  std::vector<v1::JobEvent> events;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(v1::JobEvent event,
                             ParseRow<v1::JobEvent>(query.Text(1), "event"));
    event.set_sequence(query.Int(0));
    events.push_back(std::move(event));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return events;
}

absl::StatusOr<v1::Report> GetReport(SqliteDatabase& db,
                                     const std::string& job_id) {
  SqliteStatement query =
      db.Prepare("SELECT report_proto FROM reports WHERE job_id = ?1");
  query.BindText(1, job_id);
  if (query.Step()) return ParseRow<v1::Report>(query.Text(0), "report");
  OPTFARM_RETURN_IF_ERROR(query.status());
  return absl::NotFoundError(absl::StrCat(
      "job '", absl::CHexEscape(job_id.substr(0, 100)), "' has no report"));
}

absl::StatusOr<std::optional<std::string>> FindAction(
    SqliteDatabase& db, const std::string& action_digest,
    const std::string& tool_version) {
  SqliteStatement query = db.Prepare(
      "SELECT job_id FROM action_cache"
      " WHERE action_digest = ?1 AND tool_version = ?2");
  query.BindText(1, action_digest);
  query.BindText(2, tool_version);
  std::optional<std::string> job_id;
  if (query.Step()) job_id = query.Text(0);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return job_id;
}

absl::StatusOr<std::vector<DeviceRecord>> ListDevices(SqliteDatabase& db) {
  SqliteStatement query = db.Prepare(
      "SELECT agent, participant_id, ready, disabled, reason, first_seen,"
      " last_seen, info_proto, health_proto, change_proto, failures_in_a_row,"
      " quarantined_until, quarantine_reason FROM devices ORDER BY name");
  std::vector<DeviceRecord> devices;
  while (query.Step()) {
    DeviceRecord device;
    device.agent = query.Text(0);
    device.participant_id = query.Text(1);
    device.ready = query.Int(2) != 0;
    device.disabled = query.Int(3) != 0;
    device.reason = query.Text(4);
    device.first_seen = query.Time(5);
    device.last_seen = query.Time(6);
    OPTFARM_ASSIGN_OR_RETURN(device.info,
                             ParseRow<v1::DeviceInfo>(query.Text(7), "device"));
    OPTFARM_ASSIGN_OR_RETURN(
        device.health, ParseRow<v1::DeviceHealth>(query.Text(8), "device"));
    OPTFARM_ASSIGN_OR_RETURN(device.change, ParseRow<v1::ChangeDeviceRequest>(
                                                query.Text(9), "device"));
    device.failures_in_a_row = static_cast<int>(query.Int(10));
    device.quarantined_until = query.Time(11);
    device.quarantine_reason = query.Text(12);
    devices.push_back(std::move(device));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return devices;
}

absl::StatusOr<std::vector<v1::Recipe>> ListRecipes(SqliteDatabase& db) {
  SqliteStatement query =
      db.Prepare("SELECT recipe_proto FROM recipes ORDER BY name");
  std::vector<v1::Recipe> recipes;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(v1::Recipe recipe,
                             ParseRow<v1::Recipe>(query.Text(0), "recipe"));
    recipes.push_back(std::move(recipe));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return recipes;
}

absl::StatusOr<bool> ProjectHasBlob(SqliteDatabase& db,
                                    const std::string& project,
                                    const std::string& sha256) {
  SqliteStatement query = db.Prepare(
      "SELECT EXISTS (SELECT 1 FROM project_blobs WHERE project = ?1"
      "  AND sha256 = ?2) OR EXISTS (SELECT 1 FROM job_blobs CROSS JOIN jobs"
      "  USING (job_id) WHERE sha256 = ?2 AND project = ?1)");
  query.BindText(1, project);
  query.BindText(2, sha256);
  const bool has = query.Step() && query.Int(0) != 0;
  OPTFARM_RETURN_IF_ERROR(query.status());
  return has;
}

absl::StatusOr<ProjectUsage> GetProjectUsage(SqliteDatabase& db,
                                             const std::string& project,
                                             absl::Time since) {
  SqliteStatement query = db.Prepare(
      "SELECT (SELECT COALESCE(SUM(size_bytes), 0) FROM project_blobs"
      "  WHERE project = ?1), COUNT(*), MIN(create_time) FROM jobs"
      " WHERE project = ?1 AND create_time > ?2");
  query.BindText(1, project);
  query.BindTime(2, since);
  ProjectUsage usage;
  if (query.Step()) {
    usage.bytes = query.Int(0);
    usage.jobs = static_cast<int>(query.Int(1));
    usage.oldest_job = query.Time(2);
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return usage;
}

absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs(SqliteDatabase& db) {
  SqliteStatement query = db.Prepare(
      "SELECT DISTINCT sha256 FROM jobs JOIN job_blobs USING (job_id)"
      " WHERE state IN (1, 2)");
  absl::flat_hash_set<std::string> blobs;
  while (query.Step()) blobs.insert(query.Text(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return blobs;
}

}  // namespace optfarm::storage::sqlite

namespace optfarm::storage {

absl::Status NoSuchJob(const std::string& job_id) {
  return absl::NotFoundError(
      absl::StrCat("there is no job '", absl::CHexEscape(job_id.substr(0, 100)),
                   "'; list the jobs to see their ids"));
}

}  // namespace optfarm::storage
