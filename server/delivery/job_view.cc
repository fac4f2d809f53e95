#include "server/delivery/job_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/verdict/job_verdicts.h"
#include "rpc/proto_time.h"
#include "server/scheduling/deprecated_data.h"

namespace optfarm::server {
namespace {

constexpr int kMaxMeasurementsOfJob = 10000;
// With more than these, their samples and profiles would not fit a message.
constexpr size_t kMaxFullMeasurements = 400;

// Leaves the field alone when the time is not set.
template <typename Message>
void SetTime(absl::Time time, Message& message,
             google::protobuf::Timestamp* (Message::*field)()) {
  if (time != absl::InfinitePast())
    *(message.*field)() = rpc::ToTimestamp(time);
}

void AddArtifact(const v1::Artifact& artifact, v1::Job& job) {
  const bool known = std::any_of(job.artifacts().begin(), job.artifacts().end(),
                                 [&](const v1::Artifact& other) {
                                   return other.name() == artifact.name();
                                 });
  if (!known) *job.add_artifacts() = artifact;
}

}  // namespace

v1::Task ToProto(const storage::TaskRecord& task) {
  v1::Task proto;
  proto.set_task_id(task.task_id);
  proto.set_kind(task.kind);
  proto.set_state(task.state);
  proto.set_attempt(task.attempt);
  proto.set_failed_attempts(task.failed_attempts);
  proto.set_max_attempts(task.max_attempts);
  proto.set_device(task.device);
  proto.set_holder(task.holder);
  if (task.state == v1::LEASED) {
    SetTime(task.lease_deadline, proto, &v1::Task::mutable_lease_deadline);
  }
  SetTime(task.not_before, proto, &v1::Task::mutable_not_before);
  proto.set_progress(task.progress);
  proto.set_progress_message(task.progress_message);
  if (task.failure.has_value()) *proto.mutable_failure() = *task.failure;
  SetTime(task.create_time, proto, &v1::Task::mutable_create_time);
  SetTime(task.start_time, proto, &v1::Task::mutable_start_time);
  SetTime(task.end_time, proto, &v1::Task::mutable_end_time);
  proto.mutable_artifacts()->Add(task.artifacts.begin(), task.artifacts.end());
  return proto;
}

v1::Job ToProto(const storage::StoredJob& stored) {
  const storage::JobRecord& record = stored.job;
  v1::Job job;
  job.set_job_id(record.job_id);
  *job.mutable_spec() = record.spec;
  // Lists come without.
  if (record.spec.has_calibration()) UseSources(job.mutable_spec());
  job.set_state(record.state);
  if (record.failure.has_value()) *job.mutable_failure() = *record.failure;
  SetTime(record.create_time, job, &v1::Job::mutable_create_time);
  SetTime(record.start_time, job, &v1::Job::mutable_start_time);
  SetTime(record.end_time, job, &v1::Job::mutable_end_time);
  job.mutable_gates()->Add(record.gates.begin(), record.gates.end());
  job.set_project(record.project);
  job.set_from_cache(record.from_cache);
  job.set_cached_from_job_id(record.cached_from_job_id);
  job.set_last_event_sequence(stored.last_event_sequence);
  for (const storage::TaskRecord& task : stored.tasks) {
    *job.add_tasks() = ToProto(task);
    for (v1::Artifact artifact : task.artifacts) {
      if (!task.device.empty()) {
        artifact.set_name(absl::StrCat(task.device, ".", artifact.name()));
      }
      AddArtifact(artifact, job);
    }
  }
  return job;
}

void AddReport(const v1::Report& report, v1::Job& job) {
  *job.mutable_report() = report;
  for (const v1::Artifact& artifact : report.artifacts()) {
    AddArtifact(artifact, job);
  }
}

v1::Result ToProto(const storage::MeasurementRecord& record) {
  v1::Result result;
  result.set_result_id(record.result_id);
  result.set_job_id(record.job_id);
  result.set_task_id(record.task_id);
  *result.mutable_source_model() = record.source_model;
  result.set_recipe_name(record.recipe_name);
  result.set_project(record.project);
  *result.mutable_measurement() = record.measurement;
  *result.mutable_create_time() = rpc::ToTimestamp(record.create_time);
  result.mutable_tags()->Add(record.tags.begin(), record.tags.end());
  return result;
}

v1::Series ToProto(const storage::SeriesKey& key) {
  v1::Series series;
  series.set_model_name(key.model_name);
  series.set_recipe_name(key.recipe_name);
  series.set_device(key.device);
  series.set_variant(key.variant);
  series.set_threads(key.threads);
  series.set_project(key.project);
  return series;
}

void MoveTo(storage::PointRecord&& point, v1::SeriesPoint& proto) {
  proto.set_result_id(point.result_id);
  SetTime(point.create_time, proto, &v1::SeriesPoint::mutable_create_time);
  proto.set_median_us(point.median_us);
  proto.set_p90_us(point.p90_us);
  proto.set_peak_memory_bytes(point.peak_memory_bytes);
  proto.set_file_size_bytes(point.file_size_bytes);
  proto.set_noisy(point.noisy);
  proto.set_measured_sha256(std::move(point.measured_sha256));
  proto.set_build_version(std::move(point.build_version));
  proto.set_job_id(std::move(point.job_id));
}

absl::Status AddOutcome(storage::MetadataStore& store, v1::Job& job) {
  const absl::StatusOr<v1::Report> report = store.GetReport(job.job_id());
  if (report.ok()) {
    AddReport(*report, job);
  } else if (!absl::IsNotFound(report.status())) {
    return report.status();
  }
  storage::MeasurementFilter filter;
  filter.job_id = job.job_id();
  OPTFARM_ASSIGN_OR_RETURN(
      std::vector<storage::MeasurementRecord> measurements,
      store.QueryMeasurements(filter, {0, kMaxMeasurementsOfJob}));
  if (measurements.size() <= kMaxFullMeasurements) {
    filter.full = true;
    OPTFARM_ASSIGN_OR_RETURN(
        measurements,
        store.QueryMeasurements(filter, {0, kMaxMeasurementsOfJob}));
  }
  std::reverse(measurements.begin(), measurements.end());
  for (storage::MeasurementRecord& record : measurements) {
    *job.add_measurements() = std::move(record.measurement);
  }
  verdict::AddVerdicts(job);
  return absl::OkStatus();
}

}  // namespace optfarm::server
