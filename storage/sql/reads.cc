#include "storage/sql/reads.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/job_query.h"
#include "storage/sql/select_columns.h"

namespace optfarm::storage::sql {
namespace {

template <typename Message>
absl::StatusOr<Message> Parse(const std::string& bytes,
                              absl::string_view what) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return absl::DataLossError(absl::StrCat("the database holds a damaged ", what,
                                          "; restore it from a backup"));
}

// How statements begin whose rows ReadJob and ReadTask read.
#define OPTFARM_SELECT_JOBS                                                \
  "SELECT job_number, job_id, client_request_id, spec_digest, state,"      \
  " create_time, start_time, end_time, from_cache, cached_from_job_id,"    \
  " spec_proto, outcome_proto, project, (SELECT MAX(sequence)"             \
  " FROM events WHERE events.job_id = jobs.job_id) AS last_sequence FROM " \
  "jobs "
#define OPTFARM_SELECT_TASKS                                                  \
  "SELECT task_id, job_id, ordinal, kind, state, attempt, accepted_attempt,"  \
  " failed_attempts, max_attempts, device, holder, participant_id,"           \
  " lease_deadline, not_before, ready_time, attempt_start_time, create_time," \
  " start_time, end_time, progress, details_proto FROM tasks "

constexpr char kJobById[] = OPTFARM_SELECT_JOBS "WHERE job_id = ?1";
#define OPTFARM_THESE_JOBS "job_number IN (SELECT value FROM json_each(?1))"
constexpr char kTheseJobs[] =
    OPTFARM_SELECT_JOBS "WHERE " OPTFARM_THESE_JOBS " ORDER BY job_number DESC";
// QUEUED = 1, RUNNING = 2.
constexpr char kLiveJobs[] =
    OPTFARM_SELECT_JOBS "WHERE state IN (1, 2) ORDER BY job_number";
constexpr char kTaskById[] = OPTFARM_SELECT_TASKS "WHERE task_id = ?1";
constexpr char kTasksOfJob[] =
    OPTFARM_SELECT_TASKS "WHERE job_id = ?1 ORDER BY ordinal";
constexpr char kTasksOfTheseJobs[] = OPTFARM_SELECT_TASKS
    "WHERE job_id IN (SELECT job_id FROM jobs WHERE " OPTFARM_THESE_JOBS
    ") ORDER BY job_id, ordinal";
constexpr char kCalibrationOfTheseJobs[] =
    "SELECT job_number, calibration_proto FROM jobs WHERE " OPTFARM_THESE_JOBS
    " AND LENGTH(calibration_proto) > 0";
#undef OPTFARM_THESE_JOBS

// Without its tasks.
absl::StatusOr<StoredJob> ReadJob(const SqlStatement& row) {
  constexpr SelectColumns kJob(OPTFARM_SELECT_JOBS);
  StoredJob stored;
  stored.last_event_sequence = row.Int(kJob["last_sequence"]);
  JobRecord& job = stored.job;
  job.number = row.Int(kJob["job_number"]);
  job.job_id = row.Text(kJob["job_id"]);
  job.client_request_id = row.Text(kJob["client_request_id"]);
  job.spec_digest = row.Text(kJob["spec_digest"]);
  job.state = static_cast<v1::JobState>(row.Int(kJob["state"]));
  job.create_time = row.Time(kJob["create_time"]);
  job.start_time = row.Time(kJob["start_time"]);
  job.end_time = row.Time(kJob["end_time"]);
  job.from_cache = row.Int(kJob["from_cache"]) != 0;
  job.cached_from_job_id = row.Text(kJob["cached_from_job_id"]);
  job.project = row.Text(kJob["project"]);
  OPTFARM_ASSIGN_OR_RETURN(
      job.spec, Parse<v1::JobSpec>(row.Text(kJob["spec_proto"]), "job"));
  OPTFARM_ASSIGN_OR_RETURN(
      v1::Job outcome,
      Parse<v1::Job>(row.Text(kJob["outcome_proto"]), "job outcome"));
  if (outcome.has_failure()) job.failure = outcome.failure();
  job.gates.assign(outcome.gates().begin(), outcome.gates().end());
  return stored;
}

absl::StatusOr<TaskRecord> ReadTask(const SqlStatement& row) {
  constexpr SelectColumns kTask(OPTFARM_SELECT_TASKS);
  const auto number = [&row](int column) {
    return static_cast<int>(row.Int(column));
  };
  TaskRecord task;
  task.task_id = row.Text(kTask["task_id"]);
  task.job_id = row.Text(kTask["job_id"]);
  task.ordinal = number(kTask["ordinal"]);
  task.kind = static_cast<v1::TaskKind>(row.Int(kTask["kind"]));
  task.state = static_cast<v1::TaskState>(row.Int(kTask["state"]));
  task.attempt = number(kTask["attempt"]);
  task.accepted_attempt = number(kTask["accepted_attempt"]);
  task.failed_attempts = number(kTask["failed_attempts"]);
  task.max_attempts = number(kTask["max_attempts"]);
  task.device = row.Text(kTask["device"]);
  task.holder = row.Text(kTask["holder"]);
  task.participant_id = row.Text(kTask["participant_id"]);
  task.lease_deadline = row.Time(kTask["lease_deadline"]);
  task.not_before = row.Time(kTask["not_before"]);
  task.ready_time = row.Time(kTask["ready_time"]);
  task.attempt_start_time = row.Time(kTask["attempt_start_time"]);
  task.create_time = row.Time(kTask["create_time"]);
  task.start_time = row.Time(kTask["start_time"]);
  task.end_time = row.Time(kTask["end_time"]);
  task.progress = row.Double(kTask["progress"]);
  OPTFARM_ASSIGN_OR_RETURN(
      v1::Task details,
      Parse<v1::Task>(row.Text(kTask["details_proto"]), "task"));
  task.progress_message = details.progress_message();
  if (details.has_failure()) task.failure = details.failure();
  task.artifacts.assign(details.artifacts().begin(), details.artifacts().end());
  return task;
}

#undef OPTFARM_SELECT_JOBS
#undef OPTFARM_SELECT_TASKS

constexpr char kJobOfRequest[] =
    "SELECT job_id, spec_digest FROM jobs WHERE client_request_id = ?1";

RequestMatch ReadRequest(const SqlStatement& row) {
  constexpr SelectColumns kJob(kJobOfRequest);
  return {row.Text(kJob["job_id"]), row.Text(kJob["spec_digest"])};
}

constexpr char kEventsOfJob[] =
    "SELECT sequence, event_proto FROM events WHERE job_id = ?1"
    " AND sequence > ?2 AND (?3 = 1 OR is_log = 0) ORDER BY sequence LIMIT ?4";

absl::StatusOr<v1::JobEvent> ReadEvent(const SqlStatement& row) {
  constexpr SelectColumns kEvent(kEventsOfJob);
  OPTFARM_ASSIGN_OR_RETURN(
      v1::JobEvent event,
      Parse<v1::JobEvent>(row.Text(kEvent["event_proto"]), "event"));
  event.set_sequence(row.Int(kEvent["sequence"]));
  return event;
}

constexpr char kDevices[] =
    "SELECT agent, participant_id, ready, disabled, reason, first_seen,"
    " last_seen, info_proto, health_proto, change_proto, failures_in_a_row,"
    " quarantined_until, quarantine_reason FROM devices ORDER BY name";

absl::StatusOr<DeviceRecord> ReadDevice(const SqlStatement& row) {
  constexpr SelectColumns kDevice(kDevices);
  DeviceRecord device;
  device.agent = row.Text(kDevice["agent"]);
  device.participant_id = row.Text(kDevice["participant_id"]);
  device.ready = row.Int(kDevice["ready"]) != 0;
  device.disabled = row.Int(kDevice["disabled"]) != 0;
  device.reason = row.Text(kDevice["reason"]);
  device.first_seen = row.Time(kDevice["first_seen"]);
  device.last_seen = row.Time(kDevice["last_seen"]);
  OPTFARM_ASSIGN_OR_RETURN(
      device.info,
      Parse<v1::DeviceInfo>(row.Text(kDevice["info_proto"]), "device"));
  OPTFARM_ASSIGN_OR_RETURN(
      device.health,
      Parse<v1::DeviceHealth>(row.Text(kDevice["health_proto"]), "device"));
  OPTFARM_ASSIGN_OR_RETURN(device.change,
                           Parse<v1::ChangeDeviceRequest>(
                               row.Text(kDevice["change_proto"]), "device"));
  device.failures_in_a_row =
      static_cast<int>(row.Int(kDevice["failures_in_a_row"]));
  device.quarantined_until = row.Time(kDevice["quarantined_until"]);
  device.quarantine_reason = row.Text(kDevice["quarantine_reason"]);
  return device;
}

#define OPTFARM_SELECT_STATES \
  "SELECT number, device, state, reason, time FROM device_states "
constexpr char kStatesOfDevice[] = OPTFARM_SELECT_STATES
    "WHERE device = ?1 AND (?2 = 0 OR number < ?2)"
    " ORDER BY number DESC LIMIT ?3";
constexpr char kLatestStates[] = OPTFARM_SELECT_STATES
    "WHERE number IN (SELECT MAX(number) FROM device_states GROUP BY device)";
#undef OPTFARM_SELECT_STATES

absl::StatusOr<std::vector<DeviceStateRecord>> ReadStates(SqlStatement& query) {
  constexpr SelectColumns kState(kLatestStates);
  std::vector<DeviceStateRecord> states;
  while (query.Step()) {
    DeviceStateRecord& state = states.emplace_back();
    state.number = query.Int(kState["number"]);
    state.device = query.Text(kState["device"]);
    state.state = static_cast<v1::Device::State>(query.Int(kState["state"]));
    state.reason = query.Text(kState["reason"]);
    state.time = query.Time(kState["time"]);
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return states;
}

// Each is one step into an index, however many rows a project has.
constexpr char kNextProjectWithJobs[] =
    "SELECT project FROM jobs WHERE project > ?1 ORDER BY project LIMIT 1";
constexpr char kNextProjectWithFiles[] =
    "SELECT project FROM project_blobs WHERE project > ?1"
    " ORDER BY project LIMIT 1";

absl::StatusOr<std::optional<std::string>> NextProject(
    SqlDatabase& db, const std::string& after) {
  std::optional<std::string> next;
  for (const char* sql : {kNextProjectWithJobs, kNextProjectWithFiles}) {
    SqlStatement query = db.Prepare(sql);
    query.BindText(1, after);
    if (query.Step()) {
      std::string found = query.Text(0);
      if (!next.has_value() || found < *next) next = std::move(found);
    }
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  return next;
}

constexpr char kUsageOfProject[] =
    "SELECT (SELECT CAST(COALESCE(SUM(size_bytes), 0) AS BIGINT)"
    "  FROM project_blobs WHERE project = ?1) AS bytes, COUNT(*) AS jobs,"
    " MIN(create_time) AS oldest_job FROM jobs"
    " WHERE project = ?1 AND create_time > ?2";

ProjectUsage ReadUsage(const SqlStatement& row) {
  constexpr SelectColumns kUsage(kUsageOfProject);
  ProjectUsage usage;
  usage.bytes = row.Int(kUsage["bytes"]);
  usage.jobs = static_cast<int>(row.Int(kUsage["jobs"]));
  usage.oldest_job = row.Time(kUsage["oldest_job"]);
  return usage;
}

absl::Status ReadTasks(SqlDatabase& db, StoredJob& job) {
  SqlStatement tasks = db.Prepare(kTasksOfJob);
  tasks.BindText(1, job.job.job_id);
  while (tasks.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(TaskRecord task, ReadTask(tasks));
    job.tasks.push_back(std::move(task));
  }
  return tasks.status();
}

absl::Status SetCalibration(const std::string& bytes, JobRecord& job) {
  OPTFARM_ASSIGN_OR_RETURN(*job.spec.mutable_calibration(),
                           Parse<v1::Dataset>(bytes, "calibration data list"));
  return absl::OkStatus();
}

absl::Status ReadCalibration(SqlDatabase& db, JobRecord& job) {
  SqlStatement query =
      db.Prepare("SELECT calibration_proto FROM jobs WHERE job_id = ?1");
  query.BindText(1, job.job_id);
  if (query.Step() && !query.Text(0).empty()) {
    OPTFARM_RETURN_IF_ERROR(SetCalibration(query.Text(0), job));
  }
  return query.status();
}

// Reads the rows of a jobs query, without tasks.
absl::StatusOr<std::vector<StoredJob>> ReadJobs(SqlStatement& query) {
  std::vector<StoredJob> jobs;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(StoredJob job, ReadJob(query));
    jobs.push_back(std::move(job));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return jobs;
}

// Adds the tasks of all of them, with one statement.
absl::Status ReadTasks(SqlDatabase& db, absl::Span<const int64_t> numbers,
                       absl::Span<StoredJob> jobs) {
  absl::flat_hash_map<absl::string_view, StoredJob*> by_id;
  for (StoredJob& job : jobs) by_id[job.job.job_id] = &job;
  SqlStatement tasks = db.Prepare(kTasksOfTheseJobs);
  tasks.BindInts(1, numbers);
  while (tasks.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(TaskRecord task, ReadTask(tasks));
    const auto job = by_id.find(task.job_id);
    if (job != by_id.end()) job->second->tasks.push_back(std::move(task));
  }
  return tasks.status();
}

absl::Status ReadCalibrations(SqlDatabase& db,
                              absl::Span<const int64_t> numbers,
                              absl::Span<StoredJob> jobs) {
  absl::flat_hash_map<int64_t, JobRecord*> by_number;
  for (StoredJob& job : jobs) by_number[job.job.number] = &job.job;
  SqlStatement query = db.Prepare(kCalibrationOfTheseJobs);
  query.BindInts(1, numbers);
  while (query.Step()) {
    const auto job = by_number.find(query.Int(0));
    if (job == by_number.end()) continue;
    OPTFARM_RETURN_IF_ERROR(SetCalibration(query.Text(1), *job->second));
  }
  return query.status();
}

}  // namespace

absl::StatusOr<std::optional<RequestMatch>> FindClientRequest(
    SqlDatabase& db, const std::string& client_request_id) {
  SqlStatement query = db.Prepare(kJobOfRequest);
  query.BindText(1, client_request_id);
  std::optional<RequestMatch> match;
  if (query.Step()) match = ReadRequest(query);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return match;
}

absl::StatusOr<StoredJob> GetJob(SqlDatabase& db, const std::string& job_id) {
  SqlStatement query = db.Prepare(kJobById);
  query.BindText(1, job_id);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, ReadJobs(query));
  if (jobs.empty()) {
    return NoSuchJob(job_id);
  }
  OPTFARM_RETURN_IF_ERROR(ReadTasks(db, jobs[0]));
  OPTFARM_RETURN_IF_ERROR(ReadCalibration(db, jobs[0].job));
  return std::move(jobs[0]);
}

absl::StatusOr<TaskRecord> GetTask(SqlDatabase& db,
                                   const std::string& task_id) {
  SqlStatement query = db.Prepare(kTaskById);
  query.BindText(1, task_id);
  if (query.Step()) return ReadTask(query);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return absl::NotFoundError(absl::StrCat(
      "there is no task '", absl::CHexEscape(task_id.substr(0, 100)), "'"));
}

absl::StatusOr<std::vector<StoredJob>> ListJobs(SqlDatabase& db,
                                                const JobFilter& filter,
                                                const PageRequest& page) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers,
                           FindJobs(db, filter, page));
  if (numbers.empty()) return std::vector<StoredJob>();
  SqlStatement query = db.Prepare(kTheseJobs);
  query.BindInts(1, numbers);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, ReadJobs(query));
  OPTFARM_RETURN_IF_ERROR(ReadTasks(db, numbers, absl::MakeSpan(jobs)));
  return jobs;
}

absl::StatusOr<std::vector<StoredJob>> LoadLiveJobs(SqlDatabase& db) {
  // Of which the tasks are read together.
  constexpr size_t kTogether = 500;
  SqlStatement query = db.Prepare(kLiveJobs);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, ReadJobs(query));
  for (size_t begin = 0; begin < jobs.size(); begin += kTogether) {
    const absl::Span<StoredJob> some =
        absl::MakeSpan(jobs).subspan(begin, kTogether);
    std::vector<int64_t> numbers;
    for (const StoredJob& job : some) numbers.push_back(job.job.number);
    OPTFARM_RETURN_IF_ERROR(ReadTasks(db, numbers, some));
    OPTFARM_RETURN_IF_ERROR(ReadCalibrations(db, numbers, some));
  }
  return jobs;
}

absl::StatusOr<std::vector<v1::JobEvent>> ReadEvents(SqlDatabase& db,
                                                     const std::string& job_id,
                                                     int64_t after_sequence,
                                                     int limit,
                                                     bool with_logs) {
  SqlStatement query = db.Prepare(kEventsOfJob);
  query.BindText(1, job_id);
  query.BindInt(2, after_sequence);
  query.BindInt(3, with_logs ? 1 : 0);
  query.BindInt(4, limit);
  std::vector<v1::JobEvent> events;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(v1::JobEvent event, ReadEvent(query));
    events.push_back(std::move(event));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return events;
}

absl::StatusOr<v1::Report> GetReport(SqlDatabase& db,
                                     const std::string& job_id) {
  SqlStatement query =
      db.Prepare("SELECT report_proto FROM reports WHERE job_id = ?1");
  query.BindText(1, job_id);
  if (query.Step()) return Parse<v1::Report>(query.Text(0), "report");
  OPTFARM_RETURN_IF_ERROR(query.status());
  return absl::NotFoundError(absl::StrCat(
      "job '", absl::CHexEscape(job_id.substr(0, 100)), "' has no report"));
}

absl::StatusOr<std::optional<std::string>> FindAction(
    SqlDatabase& db, const std::string& action_digest,
    const std::string& tool_version) {
  SqlStatement query = db.Prepare(
      "SELECT job_id FROM action_cache"
      " WHERE action_digest = ?1 AND tool_version = ?2");
  query.BindText(1, action_digest);
  query.BindText(2, tool_version);
  std::optional<std::string> job_id;
  if (query.Step()) job_id = query.Text(0);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return job_id;
}

absl::StatusOr<std::vector<DeviceRecord>> ListDevices(SqlDatabase& db) {
  SqlStatement query = db.Prepare(kDevices);
  std::vector<DeviceRecord> devices;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(DeviceRecord device, ReadDevice(query));
    devices.push_back(std::move(device));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return devices;
}

absl::StatusOr<std::vector<DeviceStateRecord>> ListDeviceStates(
    SqlDatabase& db, const std::string& device, const PageRequest& page) {
  SqlStatement query = db.Prepare(kStatesOfDevice);
  query.BindText(1, device);
  query.BindInt(2, page.before);
  query.BindInt(3, page.limit);
  return ReadStates(query);
}

absl::StatusOr<std::vector<DeviceStateRecord>> LatestDeviceStates(
    SqlDatabase& db) {
  SqlStatement query = db.Prepare(kLatestStates);
  return ReadStates(query);
}

absl::StatusOr<std::vector<std::string>> ListProjects(SqlDatabase& db,
                                                      const std::string& after,
                                                      int limit) {
  std::vector<std::string> projects;
  while (static_cast<int>(projects.size()) < limit) {
    OPTFARM_ASSIGN_OR_RETURN(
        std::optional<std::string> next,
        NextProject(db, projects.empty() ? after : projects.back()));
    if (!next.has_value()) break;
    projects.push_back(*std::move(next));
  }
  return projects;
}

absl::StatusOr<std::vector<v1::Recipe>> ListRecipes(SqlDatabase& db) {
  SqlStatement query =
      db.Prepare("SELECT recipe_proto FROM recipes ORDER BY name");
  std::vector<v1::Recipe> recipes;
  while (query.Step()) {
    OPTFARM_ASSIGN_OR_RETURN(v1::Recipe recipe,
                             Parse<v1::Recipe>(query.Text(0), "recipe"));
    recipes.push_back(std::move(recipe));
  }
  OPTFARM_RETURN_IF_ERROR(query.status());
  return recipes;
}

absl::StatusOr<bool> ProjectHasBlob(SqlDatabase& db, const std::string& project,
                                    const std::string& sha256) {
  SqlStatement query = db.Prepare(
      "SELECT EXISTS (SELECT 1 FROM project_blobs WHERE project = ?1"
      "  AND sha256 = ?2) OR EXISTS (SELECT 1 FROM job_blobs CROSS JOIN jobs"
      "  USING (job_id) WHERE sha256 = ?2 AND project = ?1)");
  query.BindText(1, project);
  query.BindText(2, sha256);
  const bool has = query.Step() && query.Int(0) != 0;
  OPTFARM_RETURN_IF_ERROR(query.status());
  return has;
}

absl::StatusOr<bool> AnyJobHasBlob(SqlDatabase& db,
                                   absl::Span<const std::string> job_ids,
                                   const std::string& sha256) {
  for (const std::string& job_id : job_ids) {
    SqlStatement query =
        db.Prepare("SELECT 1 FROM job_blobs WHERE job_id = ?1 AND sha256 = ?2");
    query.BindText(1, job_id);
    query.BindText(2, sha256);
    if (query.Step()) return true;
    OPTFARM_RETURN_IF_ERROR(query.status());
  }
  return false;
}

absl::StatusOr<ProjectUsage> GetProjectUsage(SqlDatabase& db,
                                             const std::string& project,
                                             absl::Time since) {
  SqlStatement query = db.Prepare(kUsageOfProject);
  query.BindText(1, project);
  query.BindTime(2, since);
  ProjectUsage usage;
  if (query.Step()) usage = ReadUsage(query);
  OPTFARM_RETURN_IF_ERROR(query.status());
  return usage;
}

absl::StatusOr<absl::flat_hash_set<std::string>> LiveBlobs(SqlDatabase& db) {
  SqlStatement query = db.Prepare(
      "SELECT DISTINCT sha256 FROM jobs JOIN job_blobs USING (job_id)"
      " WHERE state IN (1, 2)");
  absl::flat_hash_set<std::string> blobs;
  while (query.Step()) blobs.insert(query.Text(0));
  OPTFARM_RETURN_IF_ERROR(query.status());
  return blobs;
}

}  // namespace optfarm::storage::sql

namespace optfarm::storage {

absl::Status NoSuchJob(const std::string& job_id) {
  return absl::NotFoundError(
      absl::StrCat("there is no job '", absl::CHexEscape(job_id.substr(0, 100)),
                   "'; list the jobs to see their ids"));
}

}  // namespace optfarm::storage
