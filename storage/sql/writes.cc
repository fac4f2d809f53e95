#include "storage/sql/writes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/sql/measurement_writes.h"

namespace optfarm::storage {
namespace {

std::string OutcomeBytes(const JobRecord& job) {
  v1::Job outcome;
  if (job.failure.has_value()) *outcome.mutable_failure() = *job.failure;
  outcome.mutable_gates()->Add(job.gates.begin(), job.gates.end());
  return outcome.SerializeAsString();
}

std::string DetailBytes(const TaskRecord& task) {
  v1::Task details;
  details.set_progress_message(task.progress_message);
  if (task.failure.has_value()) *details.mutable_failure() = *task.failure;
  details.mutable_artifacts()->Add(task.artifacts.begin(),
                                   task.artifacts.end());
  return details.SerializeAsString();
}

absl::Status InsertBlob(SqlDatabase& db, const std::string& job_id,
                        const std::string& sha256) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO job_blobs VALUES (?1, ?2) ON CONFLICT DO NOTHING");
  insert.BindText(1, job_id);
  insert.BindText(2, sha256);
  return insert.RunLater();
}

absl::Status InsertProjectBlob(SqlDatabase& db, const std::string& project,
                               const BlobId& id) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO project_blobs (project, sha256, size_bytes, made)"
      " VALUES (?1, ?2, ?3, 0)"
      " ON CONFLICT (project, sha256) DO UPDATE SET made = 0");
  insert.BindText(1, project);
  insert.BindText(2, id.sha256);
  insert.BindInt(3, id.size_bytes);
  return insert.RunLater();
}

// What the project brought itself stays so.
absl::Status InsertMadeBlob(SqlDatabase& db, const std::string& project,
                            const BlobId& id) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO project_blobs (project, sha256, size_bytes, made)"
      " VALUES (?1, ?2, ?3, 1) ON CONFLICT DO NOTHING");
  insert.BindText(1, project);
  insert.BindText(2, id.sha256);
  insert.BindInt(3, id.size_bytes);
  return insert.RunLater();
}

absl::Status DeleteDevice(SqlDatabase& db, const std::string& name) {
  for (const char* sql : {"DELETE FROM device_states WHERE device = ?1",
                          "DELETE FROM devices WHERE name = ?1"}) {
    SqlStatement statement = db.Prepare(sql);
    statement.BindText(1, name);
    OPTFARM_RETURN_IF_ERROR(statement.RunLater());
  }
  return absl::OkStatus();
}

absl::Status InsertTag(SqlDatabase& db, const std::string& job_id,
                       const std::string& tag) {
  SqlStatement insert =
      db.Prepare("INSERT INTO job_tags VALUES (?1, ?2) ON CONFLICT DO NOTHING");
  insert.BindText(1, job_id);
  insert.BindText(2, tag);
  return insert.RunLater();
}

absl::Status InsertJobRow(SqlDatabase& db, const JobRecord& job) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO jobs (job_id, client_request_id, spec_digest, state, name,"
      " recipe_name, model_sha256, model_name, create_time, start_time,"
      " end_time, from_cache, cached_from_job_id, spec_proto,"
      " calibration_proto, outcome_proto, project) VALUES"
      " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)");
  v1::JobSpec spec = job.spec;
  const std::string calibration = spec.calibration().SerializeAsString();
  spec.clear_calibration();
  insert.BindText(1, job.job_id);
  if (!job.client_request_id.empty()) {
    insert.BindText(2, job.client_request_id);
  }
  insert.BindText(3, job.spec_digest);
  insert.BindInt(4, job.state);
  insert.BindText(5, spec.name());
  insert.BindText(6, spec.recipe().name());
  insert.BindText(7, spec.model().digest().sha256());
  insert.BindText(8, spec.model().name());
  insert.BindTime(9, job.create_time);
  insert.BindTime(10, job.start_time);
  insert.BindTime(11, job.end_time);
  insert.BindInt(12, job.from_cache ? 1 : 0);
  insert.BindText(13, job.cached_from_job_id);
  insert.BindBlob(14, spec.SerializeAsString());
  insert.BindBlob(15, calibration);
  insert.BindBlob(16, OutcomeBytes(job));
  insert.BindText(17, job.project);
  return insert.RunLater();
}

// Binds parameters 1..20; both statements number them alike.
void BindTask(SqlStatement& statement, const TaskRecord& task) {
  statement.BindText(1, task.task_id);
  statement.BindText(2, task.job_id);
  statement.BindInt(3, task.ordinal);
  statement.BindInt(4, task.kind);
  statement.BindInt(5, task.state);
  statement.BindInt(6, task.attempt);
  statement.BindInt(7, task.accepted_attempt);
  statement.BindInt(8, task.failed_attempts);
  statement.BindInt(9, task.max_attempts);
  statement.BindText(10, task.device);
  statement.BindText(11, task.holder);
  statement.BindText(12, task.participant_id);
  statement.BindTime(13, task.lease_deadline);
  statement.BindTime(14, task.not_before);
  statement.BindTime(15, task.ready_time);
  statement.BindTime(16, task.attempt_start_time);
  statement.BindTime(17, task.create_time);
  statement.BindTime(18, task.start_time);
  statement.BindTime(19, task.end_time);
  statement.BindDouble(20, task.progress);
  statement.BindBlob(21, DetailBytes(task));
}

absl::Status InsertTask(SqlDatabase& db, const TaskRecord& task) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO tasks (task_id, job_id, ordinal, kind, state, attempt,"
      " accepted_attempt, failed_attempts, max_attempts, device, holder,"
      " participant_id, lease_deadline, not_before, ready_time,"
      " attempt_start_time, create_time, start_time, end_time, progress,"
      " details_proto) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,"
      "?15,?16,?17,?18,?19,?20,?21)");
  BindTask(insert, task);
  return insert.RunLater();
}

absl::Status InsertJob(SqlDatabase& db, const NewJob& job) {
  OPTFARM_RETURN_IF_ERROR(InsertJobRow(db, job.job));
  for (const TaskRecord& task : job.tasks) {
    OPTFARM_RETURN_IF_ERROR(InsertTask(db, task));
  }
  for (const std::string& sha256 : job.blobs) {
    OPTFARM_RETURN_IF_ERROR(InsertBlob(db, job.job.job_id, sha256));
  }
  for (const std::string& tag : job.job.spec.tags()) {
    OPTFARM_RETURN_IF_ERROR(InsertTag(db, job.job.job_id, tag));
  }
  return absl::OkStatus();
}

absl::Status UpdateJob(SqlDatabase& db, const JobRecord& job) {
  SqlStatement update = db.Prepare(
      "UPDATE jobs SET state = ?2, start_time = ?3, end_time = ?4,"
      " outcome_proto = ?5 WHERE job_id = ?1");
  update.BindText(1, job.job_id);
  update.BindInt(2, job.state);
  update.BindTime(3, job.start_time);
  update.BindTime(4, job.end_time);
  update.BindBlob(5, OutcomeBytes(job));
  return update.RunLater();
}

absl::Status UpdateTask(SqlDatabase& db, const TaskUpdate& change) {
  SqlStatement update = db.Prepare(
      "UPDATE tasks SET job_id = ?2, ordinal = ?3, kind = ?4, state = ?5,"
      " attempt = ?6, accepted_attempt = ?7, failed_attempts = ?8,"
      " max_attempts = ?9, device = ?10, holder = ?11, participant_id = ?12,"
      " lease_deadline = ?13, not_before = ?14, ready_time = ?15,"
      " attempt_start_time = ?16, create_time = ?17, start_time = ?18,"
      " end_time = ?19, progress = ?20, details_proto = ?21"
      " WHERE task_id = ?1 AND state = ?22 AND attempt = ?23");
  BindTask(update, change.task);
  update.BindInt(22, change.expected_state);
  update.BindInt(23, change.expected_attempt);
  return update.RunLater(absl::AbortedError(absl::StrCat(
      "changing task ", change.task.task_id, ": it is no longer in the state ",
      change.expected_state, " of attempt ", change.expected_attempt)));
}

absl::Status WriteAttempt(SqlDatabase& db, const AttemptRecord& attempt) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO attempts VALUES (?1,?2,?3,?4,?5,?6,?7,?8)"
      " ON CONFLICT (task_id, attempt) DO UPDATE SET holder = ?3,"
      " participant_id = ?4, start_time = ?5, end_time = ?6, outcome = ?7,"
      " message = ?8");
  insert.BindText(1, attempt.task_id);
  insert.BindInt(2, attempt.attempt);
  insert.BindText(3, attempt.holder);
  insert.BindText(4, attempt.participant_id);
  insert.BindTime(5, attempt.start_time);
  insert.BindTime(6, attempt.end_time);
  insert.BindText(7, attempt.outcome);
  insert.BindText(8, attempt.message);
  return insert.RunLater();
}

absl::Status AppendEvent(SqlDatabase& db, const EventRecord& record) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO events (job_id, sequence, is_log, event_proto) VALUES (?1,"
      " (SELECT COALESCE(MAX(sequence), 0) + 1 FROM events WHERE job_id = ?1),"
      " ?2, ?3)");
  insert.BindText(1, record.job_id);
  insert.BindInt(2, record.event.has_log() ? 1 : 0);
  insert.BindBlob(3, record.event.SerializeAsString());
  return insert.RunLater();
}

absl::Status WriteReport(SqlDatabase& db, const ReportRecord& record) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO reports VALUES (?1, ?2)"
      " ON CONFLICT (job_id) DO UPDATE SET report_proto = ?2");
  insert.BindText(1, record.job_id);
  insert.BindBlob(2, record.report.SerializeAsString());
  return insert.RunLater();
}

absl::Status WriteAction(SqlDatabase& db, const ActionRecord& action) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO action_cache VALUES (?1,?2,?3,?4)"
      " ON CONFLICT (action_digest, tool_version) DO UPDATE SET job_id = ?3,"
      " create_time = ?4");
  insert.BindText(1, action.action_digest);
  insert.BindText(2, action.tool_version);
  insert.BindText(3, action.job_id);
  insert.BindTime(4, action.create_time);
  return insert.RunLater();
}

absl::Status WriteDevice(SqlDatabase& db, const DeviceRecord& device) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO devices (name, agent, participant_id, ready, disabled,"
      " reason, first_seen, last_seen, info_proto, health_proto, change_proto,"
      " failures_in_a_row, quarantined_until, quarantine_reason) VALUES"
      " (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)"
      " ON CONFLICT (name) DO UPDATE SET agent = ?2, participant_id = ?3,"
      " ready = ?4, disabled = ?5, reason = ?6, last_seen = ?8,"
      " info_proto = ?9, health_proto = ?10, change_proto = ?11,"
      " failures_in_a_row = ?12, quarantined_until = ?13,"
      " quarantine_reason = ?14");
  insert.BindText(1, device.info.name());
  insert.BindText(2, device.agent);
  insert.BindText(3, device.participant_id);
  insert.BindInt(4, device.ready ? 1 : 0);
  insert.BindInt(5, device.disabled ? 1 : 0);
  insert.BindText(6, device.reason);
  insert.BindTime(7, device.first_seen);
  insert.BindTime(8, device.last_seen);
  insert.BindBlob(9, device.info.SerializeAsString());
  insert.BindBlob(10, device.health.SerializeAsString());
  insert.BindBlob(11, device.change.SerializeAsString());
  insert.BindInt(12, device.failures_in_a_row);
  insert.BindTime(13, device.quarantined_until);
  insert.BindText(14, device.quarantine_reason);
  return insert.RunLater();
}

absl::Status WriteDeviceState(SqlDatabase& db, const DeviceStateRecord& state) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO device_states (device, state, reason, time)"
      " VALUES (?1,?2,?3,?4)");
  insert.BindText(1, state.device);
  insert.BindInt(2, state.state);
  insert.BindText(3, state.reason);
  insert.BindTime(4, state.time);
  OPTFARM_RETURN_IF_ERROR(insert.Run());
  SqlStatement forget = db.Prepare(
      "DELETE FROM device_states WHERE device = ?1 AND number <="
      " (SELECT number FROM device_states WHERE device = ?1"
      "  ORDER BY number DESC LIMIT 1 OFFSET ?2)");
  forget.BindText(1, state.device);
  forget.BindInt(2, kDeviceStatesKept);
  return forget.Run();
}

absl::Status WriteParticipant(SqlDatabase& db,
                              const ParticipantRecord& participant) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO participants VALUES (?1,?2,?3,?4,?5,?6)"
      " ON CONFLICT (participant_id) DO UPDATE SET name = ?2, kind = ?3,"
      " build_version = ?4, last_seen = ?6");
  insert.BindText(1, participant.participant_id);
  insert.BindText(2, participant.name);
  insert.BindInt(3, participant.kind);
  insert.BindText(4, participant.build_version);
  insert.BindTime(5, participant.first_seen);
  insert.BindTime(6, participant.last_seen);
  return insert.RunLater();
}

absl::Status WriteRecipe(SqlDatabase& db, const v1::Recipe& recipe) {
  SqlStatement insert = db.Prepare(
      "INSERT INTO recipes VALUES (?1, '', ?2)"
      " ON CONFLICT (name) DO UPDATE SET offered_by = '', recipe_proto = ?2");
  insert.BindText(1, recipe.name());
  insert.BindBlob(2, recipe.SerializeAsString());
  return insert.RunLater();
}

// Writes each record of a list with `write`, up to the first error.
template <typename Record>
absl::Status WriteEach(SqlDatabase& db, const std::vector<Record>& records,
                       absl::Status (*write)(SqlDatabase&, const Record&)) {
  for (const Record& record : records) {
    OPTFARM_RETURN_IF_ERROR(write(db, record));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteBatchTo(SqlDatabase& db, const WriteBatch& batch,
                          ResultPlaces& places) {
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.new_jobs, InsertJob));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.jobs, UpdateJob));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.tasks, UpdateTask));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.attempts, WriteAttempt));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.events, AppendEvent));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.reports, WriteReport));
  for (const MeasurementRecord& record : batch.measurements) {
    OPTFARM_RETURN_IF_ERROR(InsertMeasurement(db, record, places));
  }
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.actions, WriteAction));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.devices, WriteDevice));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.device_states, WriteDeviceState));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.participants, WriteParticipant));
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.recipes, WriteRecipe));
  for (const auto& [job_id, sha256] : batch.job_blobs) {
    OPTFARM_RETURN_IF_ERROR(InsertBlob(db, job_id, sha256));
  }
  for (const auto& [project, id] : batch.project_blobs) {
    OPTFARM_RETURN_IF_ERROR(InsertProjectBlob(db, project, id));
  }
  for (const auto& [project, id] : batch.made_blobs) {
    OPTFARM_RETURN_IF_ERROR(InsertMadeBlob(db, project, id));
  }
  OPTFARM_RETURN_IF_ERROR(WriteEach(db, batch.deleted_devices, DeleteDevice));
  return absl::OkStatus();
}

}  // namespace optfarm::storage
