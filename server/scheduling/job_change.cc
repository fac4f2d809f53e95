#include "server/scheduling/job_change.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "engine/verdict/gates.h"
#include "rpc/proto_time.h"
#include "server/conventions/log_text.h"
#include "server/conventions/task_events.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::TaskRecord;

constexpr int64_t kMaxLogChunkBytes = 256 << 10;
constexpr int64_t kMaxTaskLogBytes = 4 << 20;
constexpr size_t kMaxProgressMessageBytes = 200;

// What of `chunk` has not been received yet, given where it begins.
absl::string_view NewPart(absl::string_view chunk, int64_t offset,
                          int64_t received) {
  if (offset >= received) return chunk;
  const int64_t known = received - std::max<int64_t>(offset, 0);
  if (known >= static_cast<int64_t>(chunk.size())) return "";
  return chunk.substr(static_cast<size_t>(known));
}

}  // namespace

JobChange::TaskBefore::TaskBefore(const LiveTask& task)
    : state(task.record.state),
      attempt(task.record.attempt),
      accepted_attempt(task.record.accepted_attempt),
      failed_attempts(task.record.failed_attempts),
      progress(task.record.progress),
      progress_message(task.record.progress_message),
      artifacts(task.record.artifacts.size()) {}

JobChange::JobChange(LiveJob job, absl::Time now,
                     const SchedulingOptions& options)
    : job_(std::move(job)),
      state_before_(job_.job.state),
      gates_before_(job_.job.gates.size()),
      tasks_before_(job_.tasks.begin(), job_.tasks.end()),
      now_(now),
      options_(options) {}

v1::JobEvent& JobChange::AddEvent(const TaskRecord* task) {
  storage::EventRecord& record = batch_.events.emplace_back();
  record.job_id = job_.job.job_id;
  *record.event.mutable_time() = rpc::ToTimestamp(now_);
  if (task != nullptr) {
    record.event.set_task_id(task->task_id);
    record.event.set_attempt(task->attempt);
  }
  return record.event;
}

void JobChange::AddTaskEvent(const TaskRecord& task,
                             absl::string_view message) {
  v1::TaskStateChange& change = *AddEvent(&task).mutable_task_state();
  change.set_state(task.state);
  change.set_holder(task.holder);
  if (task.failure.has_value() && task.state != v1::TASK_DONE &&
      task.state != v1::LEASED) {
    *change.mutable_failure() = *task.failure;
  }
  change.set_message(std::string(message));
}

void JobChange::AddAttempt(const TaskRecord& task, absl::string_view outcome,
                           absl::string_view message) {
  storage::AttemptRecord& attempt = batch_.attempts.emplace_back();
  attempt.task_id = task.task_id;
  attempt.attempt = task.attempt;
  attempt.holder = task.holder;
  attempt.participant_id = task.participant_id;
  attempt.start_time = task.attempt_start_time;
  if (outcome != "running") attempt.end_time = now_;
  attempt.outcome = std::string(outcome);
  attempt.message = std::string(message);
}

void JobChange::Grant(size_t index, const Holder& holder) {
  LiveTask& task = job_.tasks[index];
  task.record = Leased(std::move(task.record), holder, now_, options_);
  task.acknowledged = false;
  task.log_received = 0;
  AddAttempt(task.record, "running", "");
  AddTaskEvent(task.record, absl::StrCat("attempt ", task.record.attempt,
                                         " on ", holder.name));
  if (job_.job.state == v1::QUEUED) {
    job_.job.state = v1::RUNNING;
    job_.job.start_time = now_;
    AddEvent(nullptr).mutable_job_state()->set_state(v1::RUNNING);
  }
}

void JobChange::Renew(size_t index, bool acknowledged) {
  LiveTask& task = job_.tasks[index];
  OPTFARM_CHECK(task.record.state == v1::LEASED);
  task.acknowledged = acknowledged;
  task.record.lease_deadline = now_ + options_.lease;
}

void JobChange::TakeNews(size_t index, const TaskNews& news) {
  LiveTask& task = job_.tasks[index];
  const absl::string_view message =
      CutText(news.progress_message, kMaxProgressMessageBytes);
  // A comparison that is false for NaN, so that NaN becomes 0.
  const double progress =
      news.progress > 0 ? std::min(news.progress, 1.0) : 0.0;
  if (progress != task.record.progress ||
      message != task.record.progress_message) {
    task.record.progress = progress;
    task.record.progress_message = std::string(message);
    v1::TaskProgress& event = *AddEvent(&task.record).mutable_progress();
    event.set_fraction(progress);
    event.set_message(std::string(message));
  }
  absl::string_view log =
      NewPart(news.log_chunk, news.log_offset, task.log_received);
  if (log.empty() || task.log_kept > kMaxTaskLogBytes) return;
  task.log_received = std::max(task.log_received, news.log_offset) +
                      static_cast<int64_t>(log.size());
  const int64_t room =
      std::min(kMaxLogChunkBytes, kMaxTaskLogBytes - task.log_kept);
  const bool cut = static_cast<int64_t>(log.size()) > room;
  if (cut) log = log.substr(0, static_cast<size_t>(room));
  // One more than the limit says that the note below has been written.
  task.log_kept += static_cast<int64_t>(log.size()) + (cut ? 1 : 0);
  AddEvent(&task.record)
      .mutable_log()
      ->set_text(ToUtf8(log) +
                 (cut ? "\n[log cut here; see the artifact task.log]\n" : ""));
}

void JobChange::FailAttempt(size_t index, const v1::Failure& failure,
                            absl::string_view outcome) {
  AddAttempt(record(index), outcome, failure.message());
  record(index) =
      AttemptFailed(std::move(record(index)), failure, now_, options_);
  const TaskRecord& task = record(index);
  AddTaskEvent(task,
               task.state == v1::READY
                   ? absl::StrCat("attempt ", task.attempt, " failed; ",
                                  task.max_attempts - task.failed_attempts,
                                  " more allowed, next in ",
                                  absl::FormatDuration(task.not_before - now_))
                   : absl::StrCat("attempt ", task.attempt, " failed"));
  Settle();
}

void JobChange::HandBack(size_t index, absl::string_view reason) {
  AddAttempt(record(index), "released", reason);
  record(index) = HandedBack(std::move(record(index)), now_);
  AddTaskEvent(record(index), absl::StrCat(kHandedBack, reason));
}

void JobChange::KeepArtifacts(
    size_t index,
    const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts) {
  for (const v1::Artifact& artifact : artifacts) {
    std::vector<v1::Artifact>& kept = record(index).artifacts;
    const auto same =
        std::find_if(kept.begin(), kept.end(), [&](const v1::Artifact& other) {
          return other.name() == artifact.name();
        });
    if (same != kept.end()) kept.erase(same);
    kept.push_back(artifact);
    NoteMade(artifact.digest());
  }
}

// It stays for the job, and counts for its project.
void JobChange::NoteMade(const v1::Digest& digest) {
  batch_.job_blobs.emplace_back(job_.job.job_id, digest.sha256());
  batch_.made_blobs.emplace_back(
      job_.job.project, storage::BlobId{digest.sha256(), digest.size_bytes()});
}

void JobChange::MarkAccepted(size_t index) {
  record(index).accepted_attempt = record(index).attempt;
}

void JobChange::CompleteOptimize(size_t index, const v1::Report& report) {
  KeepArtifacts(index, report.artifacts());
  if (report.has_optimized_model()) {
    NoteMade(report.optimized_model());
  }
  AddAttempt(record(index), "done", "");
  record(index) = Done(std::move(record(index)), now_);
  AddTaskEvent(record(index), "");
  batch_.reports.push_back({job_.job.job_id, report});
  job_.job.gates.assign(report.gates().begin(), report.gates().end());
  for (LiveTask& task : job_.tasks) {
    if (task.record.state != v1::BLOCKED) continue;
    task.record = Unblocked(std::move(task.record), now_);
    AddTaskEvent(task.record, "");
  }
  Settle();
}

void JobChange::CompleteBenchmark(size_t index,
                                  const v1::BenchmarkResult& result) {
  const std::vector<v1::Measurement> measurements(result.measurements().begin(),
                                                  result.measurements().end());
  for (const v1::Measurement& measurement : measurements) {
    storage::MeasurementRecord& row = batch_.measurements.emplace_back();
    row.job_id = job_.job.job_id;
    row.task_id = record(index).task_id;
    row.create_time = now_;
    row.recipe_name = job_.spec->recipe().name();
    row.project = job_.job.project;
    row.source_model = job_.spec->model();
    row.measurement = measurement;
    // A device may have measured the original as another file (float.pb).
    if (measurement.variant() == "float") {
      row.measurement.set_file_size_bytes(
          job_.spec->model().digest().size_bytes());
    }
  }
  AddAttempt(record(index), "done", "");
  record(index) = Done(std::move(record(index)), now_);
  AddTaskEvent(record(index), "");
  for (v1::GateResult& gate : verdict::SpeedGates(
           job_.spec->recipe(), record(index).device, measurements)) {
    job_.job.gates.push_back(std::move(gate));
  }
  Settle();
}

void JobChange::Cancel(absl::string_view reason) {
  CancelRest();
  EndJob(v1::CANCELLED, MakeFailure(v1::Failure::USER, "CANCELLED",
                                    reason.empty() ? "cancelled" : reason));
}

void JobChange::Begin() {
  AddEvent(nullptr).mutable_job_state()->set_state(job_.job.state);
  Settle();
}

void JobChange::Expire(const AwayTime& away) {
  const JobLimits limits = LimitsOf(*job_.spec, options_);
  const absl::Time create = job_.job.create_time;
  if (now_ >= create + limits.job + away.Since(create)) {
    CancelRest();
    EndJob(v1::FAILED,
           MakeFailure(v1::Failure::INTERNAL, "DEADLINE_EXCEEDED",
                       absl::StrCat("the job was not finished within ",
                                    absl::FormatDuration(limits.job),
                                    "; submit it again with a longer job "
                                    "deadline, or see why its tasks waited")));
    return;
  }
  for (size_t i = 0; i < job_.tasks.size(); ++i) {
    const TaskDeadline passed = PassedDeadline(record(i), limits, away, now_);
    if (passed != TaskDeadline::kNone) ExpireTask(i, passed);
    if (HasEnded(job_.job.state)) return;
  }
}

void JobChange::ExpireTask(size_t index, TaskDeadline deadline) {
  const TaskRecord& task = record(index);
  const JobLimits limits = LimitsOf(*job_.spec, options_);
  switch (deadline) {
    case TaskDeadline::kNone:
      return;
    case TaskDeadline::kLease:
      return FailAttempt(
          index,
          MakeFailure(v1::Failure::INTERNAL, "UNAVAILABLE",
                      absl::StrCat(task.holder, " was not heard of for ",
                                   absl::FormatDuration(options_.lease),
                                   " while it held the task")),
          "lost");
    case TaskDeadline::kProvision:
      return FailAttempt(
          index,
          MakeFailure(
              v1::Failure::INTERNAL, "DEADLINE_EXCEEDED",
              absl::StrCat("attempt ", task.attempt, " on ", task.holder,
                           " had not begun to work after ",
                           absl::FormatDuration(limits.provision),
                           task.progress_message.empty() ? "" : ", last said: ",
                           task.progress_message,
                           "; see that the device is reachable, cool and "
                           "idle (optctl devices)")),
          "failed");
    case TaskDeadline::kRun:
      return FailAttempt(
          index,
          MakeFailure(v1::Failure::INTERNAL, "DEADLINE_EXCEEDED",
                      absl::StrCat("attempt ", task.attempt, " on ",
                                   task.holder, " ran longer than ",
                                   absl::FormatDuration(limits.run),
                                   "; give the job a longer run deadline")),
          "failed");
    case TaskDeadline::kQueue:
      record(index) =
          Failed(std::move(record(index)),
                 MakeFailure(
                     v1::Failure::INTERNAL, "DEADLINE_EXCEEDED",
                     absl::StrCat(
                         "nobody took the task within ",
                         absl::FormatDuration(limits.queue),
                         task.device.empty()
                             ? std::string("; see that a worker is running")
                             : absl::StrCat("; see that device ", task.device,
                                            " is available (optctl devices)"))),
                 now_);
      AddTaskEvent(record(index), "waited too long");
      return Settle();
  }
}

void JobChange::CancelRest() {
  for (LiveTask& task : job_.tasks) {
    if (HasEnded(task.record.state)) continue;
    if (task.record.state == v1::LEASED) {
      AddAttempt(task.record, "cancelled", "");
    }
    task.record = Cancelled(std::move(task.record), now_);
    AddTaskEvent(task.record, "");
  }
}

void JobChange::EndJob(v1::JobState state,
                       const std::optional<v1::Failure>& failure) {
  OPTFARM_CHECK(MayFollow(job_.job.state, state));
  job_.job.state = state;
  job_.job.end_time = now_;
  job_.job.failure = failure;
  v1::JobStateChange& change = *AddEvent(nullptr).mutable_job_state();
  change.set_state(state);
  if (failure.has_value()) *change.mutable_failure() = *failure;
}

// A failed optimize task decides the job: nothing can be measured without it. A
// failed benchmark task leaves the other devices their chance.
void JobChange::Settle() {
  if (HasEnded(job_.job.state)) return;
  const TaskRecord& optimize = record(0);
  if (optimize.state == v1::TASK_FAILED) {
    CancelRest();
    EndJob(v1::FAILED, optimize.failure);
    return;
  }
  const TaskRecord* failed = nullptr;
  for (const LiveTask& task : job_.tasks) {
    if (!HasEnded(task.record.state)) return;
    if (task.record.state == v1::TASK_FAILED) failed = &task.record;
  }
  if (failed != nullptr) {
    EndJob(v1::FAILED, failed->failure);
    return;
  }
  const std::optional<v1::Failure> missed =
      verdict::GateFailure(job_.job.gates);
  EndJob(missed.has_value() ? v1::FAILED : v1::SUCCEEDED, missed);
}

bool JobChange::durable() const { return !batch_.empty(); }

void JobChange::AppendTo(storage::WriteBatch& batch) {
  if (job_.job.state != state_before_ ||
      job_.job.gates.size() != gates_before_) {
    batch.jobs.push_back(job_.job);
  }
  for (size_t i = 0; i < job_.tasks.size(); ++i) {
    const TaskBefore& before = tasks_before_[i];
    if (before == TaskBefore(job_.tasks[i])) continue;
    batch.tasks.push_back({record(i), before.state, before.attempt});
  }
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
  };
  move_all(batch_.attempts, batch.attempts);
  move_all(batch_.events, batch.events);
  move_all(batch_.reports, batch.reports);
  move_all(batch_.measurements, batch.measurements);
  move_all(batch_.job_blobs, batch.job_blobs);
  move_all(batch_.made_blobs, batch.made_blobs);
}

}  // namespace optfarm::server
