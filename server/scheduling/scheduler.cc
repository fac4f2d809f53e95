// Which jobs there are, and how changes to them are committed.

#include "server/scheduling/scheduler.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/conventions/log_text.h"
#include "server/conventions/names.h"
#include "server/scheduling/deprecated_data.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::StoredJob;
using ::optfarm::storage::TaskRecord;

constexpr absl::Duration kLongestTick = absl::Minutes(1);
constexpr absl::Duration kRetryCommit = absl::Seconds(1);
constexpr size_t kMaxReasonBytes = 1000;

void LogEvent(const storage::EventRecord& record) {
  const v1::JobEvent& event = record.event;
  if (event.has_job_state()) {
    const v1::JobStateChange& change = event.job_state();
    LogInfo("job ", record.job_id, " ", v1::JobState_Name(change.state()),
            change.has_failure() ? ": " : "", change.failure().message());
  } else if (event.has_task_state()) {
    const v1::TaskStateChange& change = event.task_state();
    LogInfo("task ", event.task_id(), " ", v1::TaskState_Name(change.state()),
            change.message().empty() ? "" : ", ", change.message(),
            change.has_failure() ? ": " : "", change.failure().message());
  }
}

bool IsRunning(const LiveJob& job) { return job.job.state != v1::QUEUED; }

// Those that the plan may bring into another state.
std::set<std::string> DevicesOf(const SchedulerPlan& plan) {
  std::set<std::string> devices;
  for (const auto& [name, before] : plan.fleet.devices) devices.insert(name);
  for (const auto& [job_id, change] : plan.changes) {
    for (const LiveTask& task : change->job().tasks) {
      if (!task.record.device.empty()) devices.insert(task.record.device);
    }
  }
  return devices;
}

}  // namespace

Scheduler::Scheduler(storage::MetadataStore& store, storage::BlobStore& blobs,
                     SchedulingOptions options, std::string server_version)
    : store_(store),
      blobs_(blobs),
      options_(options),
      server_version_(std::move(server_version)) {}

absl::Status Scheduler::Load(absl::Time now, AwayTime away) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, store_.LoadLiveJobs());
  OPTFARM_ASSIGN_OR_RETURN(auto devices, store_.ListDevices());
  OPTFARM_ASSIGN_OR_RETURN(auto recipes, store_.ListRecipes());
  OPTFARM_ASSIGN_OR_RETURN(auto states, store_.LatestDeviceStates());
  absl::MutexLock lock(&mutex_);
  away_ = std::move(away);
  if (away_.last_here() != absl::InfinitePast()) {
    away_.Note(away_.last_here(), now);
  }
  fleet_.Load(std::move(devices), std::move(recipes));
  states_.Load(std::move(states));
  NoteAllStatesSoon();
  if (!jobs.empty()) LogInfo("going on with ", jobs.size(), " jobs");
  for (StoredJob& job : jobs) AddLiveJob(std::move(job), now);
  return absl::OkStatus();
}

void Scheduler::AddLiveJob(StoredJob stored, absl::Time now) {
  UseSources(&stored.job.spec);
  LiveJob live;
  live.spec = std::make_shared<v1::JobSpec>(std::move(stored.job.spec));
  live.job = std::move(stored.job);
  live.job.spec.Clear();
  last_job_number_ = std::max(last_job_number_, live.job.number);
  for (TaskRecord& record : stored.tasks) {
    live.tasks.push_back(LiveTask{std::move(record)});
  }
  ForgiveLeases(live, now);
  Keep(std::move(live), now);
}

absl::Time Scheduler::DueOf(const LiveJob& job, absl::Time now) const {
  const JobLimits limits = LimitsOf(*job.spec, options_);
  absl::Time due =
      job.job.create_time + limits.job + away_.Since(job.job.create_time);
  for (const LiveTask& task : job.tasks) {
    due = std::min(due, NextDue(task.record, limits, away_, now));
  }
  return due;
}

void Scheduler::Keep(LiveJob job, absl::Time now) {
  due_.Set(job.job.job_id, DueOf(job, now));
  const auto [known, added] = jobs_.try_emplace(job.job.job_id);
  if (added) {
    index_.Add(job);
    ++live_jobs_[job.job.project];
  } else {
    index_.Change(known->second, job);
    if (IsRunning(known->second)) --running_jobs_;
  }
  if (IsRunning(job)) ++running_jobs_;
  known->second = std::move(job);
}

void Scheduler::Drop(const std::string& job_id) {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return;
  index_.Remove(job->second);
  due_.Erase(job_id);
  if (IsRunning(job->second)) --running_jobs_;
  const auto of_project = live_jobs_.find(job->second.job.project);
  if (--of_project->second == 0) live_jobs_.erase(of_project);
  jobs_.erase(job);
}

JobChange* Scheduler::Edit(Plan& plan, const std::string& job_id) {
  const auto planned = plan.changes.find(job_id);
  if (planned != plan.changes.end()) return planned->second.get();
  const auto live = jobs_.find(job_id);
  if (live == jobs_.end()) return nullptr;
  auto change = std::make_unique<JobChange>(live->second, plan.now, options_);
  return (plan.changes[job_id] = std::move(change)).get();
}

absl::Status Scheduler::Commit(Plan& plan) {
  for (auto& [job_id, change] : plan.changes) {
    if (!change->durable()) continue;
    plan.news.changed_jobs.push_back(job_id);
    change->AppendTo(plan.batch);
  }
  if (!plan.batch.empty()) {
    plan.batch.device_states = states_.unwritten();
    const absl::Time begin = absl::Now();
    const absl::Status status = store_.Commit(plan.batch);
    if (absl::IsAborted(status)) ReloadAfterConflict(plan);
    if (!status.ok()) {
      fleet_.Undo(std::move(plan.fleet));
      plan.news.changed_jobs.clear();
      return absl::IsAborted(status) ? absl::UnavailableError(status.message())
                                     : status;
    }
    states_.Written();
    if (observer_) observer_(plan.batch, absl::Now() - begin);
  }
  std::set<std::string> devices = DevicesOf(plan);
  for (std::string& device : TakeOver(plan)) {
    devices.insert(device);
    plan.news.free_devices.push_back(std::move(device));
  }
  NoteStates(devices, plan.now);
  return absl::OkStatus();
}

QueueNumbers Scheduler::Numbers(absl::Time now) {
  const auto kind = [&](const TaskIndex::Numbers& tasks) {
    return QueueNumbers::Kind{
        tasks.ready, tasks.leased,
        std::max(now - tasks.oldest, absl::ZeroDuration())};
  };
  QueueNumbers numbers;
  absl::MutexLock lock(&mutex_);
  numbers.running_jobs = running_jobs_;
  numbers.queued_jobs = static_cast<int>(jobs_.size()) - running_jobs_;
  numbers.optimize = kind(index_.NumbersOf(v1::OPTIMIZE));
  numbers.benchmark = kind(index_.NumbersOf(v1::BENCHMARK));
  numbers.task_looks = index_.looks();
  numbers.device_looks = device_looks_;
  return numbers;
}

std::vector<Scheduler::KnownParticipant> Scheduler::Participants(
    absl::Time since) {
  std::vector<KnownParticipant> known;
  {
    absl::MutexLock lock(&mutex_);
    for (storage::ParticipantRecord& record : fleet_.Participants(since)) {
      const size_t tasks = index_.LeasedBy(record.participant_id).size();
      known.push_back({std::move(record), static_cast<int>(tasks)});
    }
  }
  std::sort(
      known.begin(), known.end(),
      [](const KnownParticipant& a, const KnownParticipant& b) {
        return std::tie(a.record.kind, a.record.name, a.record.participant_id) <
               std::tie(b.record.kind, b.record.name, b.record.participant_id);
      });
  return known;
}

std::map<std::string, int> Scheduler::LiveJobsByProject() {
  absl::MutexLock lock(&mutex_);
  return live_jobs_;
}

std::pair<int, int> Scheduler::CountParticipants(absl::Time since) {
  absl::MutexLock lock(&mutex_);
  return {fleet_.CountParticipants(v1::SynchronizeRequest::WORKER, since),
          fleet_.CountParticipants(v1::SynchronizeRequest::AGENT, since)};
}

std::vector<std::string> Scheduler::TakeOver(Plan& plan) {
  std::vector<std::string> devices;
  for (auto& [job_id, change] : plan.changes) {
    absl::c_move(DevicesHeldBy(job_id), std::back_inserter(devices));
    LiveJob job = std::move(*change).Release();
    if (HasEnded(job.job.state)) {
      Drop(job_id);
    } else {
      Keep(std::move(job), plan.now);
    }
  }
  std::erase_if(devices, [&](const std::string& device)
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                               return index_.LeasedOnDevice(device) != nullptr;
                             });
  return devices;
}

std::vector<std::string> Scheduler::DevicesHeldBy(const std::string& job_id) {
  std::vector<std::string> devices;
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) return devices;
  for (const LiveTask& task : job->second.tasks) {
    if (task.record.state != v1::LEASED || task.record.device.empty()) continue;
    devices.push_back(task.record.device);
  }
  return devices;
}

// The store had another idea of a task than we: somebody else writes to it, or
// we have a defect. Believe the store.
void Scheduler::ReloadAfterConflict(const Plan& plan) {
  NoteAllStatesSoon();
  for (const auto& [job_id, change] : plan.changes) {
    LogError("job ", job_id, " differs in the database; reading it again");
    Drop(job_id);
    absl::StatusOr<StoredJob> stored = store_.GetJob(job_id);
    if (stored.ok() && !HasEnded(stored->job.state)) {
      AddLiveJob(*std::move(stored), plan.now);
    }
  }
}

void Scheduler::Tell(const Plan& plan) {
  const SchedulerNews& news = plan.news;
  if (!news.changed_jobs.empty()) {
    for (const storage::EventRecord& event : plan.batch.events) LogEvent(event);
  } else if (news.ready_jobs.empty() && news.free_devices.empty()) {
    return;
  }
  if (listener_) listener_(news);
}

absl::Status Scheduler::Cancel(const std::string& job_id,
                               absl::string_view reason, absl::Time now) {
  Plan plan(now);
  {
    absl::MutexLock lock(&mutex_);
    JobChange* change = Edit(plan, job_id);
    if (change == nullptr) return store_.GetJob(job_id).status();
    change->Cancel(CutText(reason, kMaxReasonBytes));
    OPTFARM_RETURN_IF_ERROR(Annotate(Commit(plan), "cancelling the job"));
  }
  Tell(plan);
  return absl::OkStatus();
}

absl::Time Scheduler::Tick(absl::Time now) {
  Plan plan(now);
  absl::Time next = now + kLongestTick;
  {
    absl::MutexLock lock(&mutex_);
    NoteDueStates(plan);
    KeepStates();
    for (const std::string& job_id : due_.PassedAt(now)) {
      const absl::Time due = DueOf(jobs_.at(job_id), now);
      if (due <= now) {
        Edit(plan, job_id)->Expire(away_);
      } else {
        due_.Set(job_id, due);
        plan.news.ready_jobs.push_back(job_id);
      }
    }
    next = std::min(next, due_.FirstAfter(now));
    if (const absl::Status status = Commit(plan); !status.ok()) {
      LogError("applying deadlines: ", status.message());
      next = now + kRetryCommit;
    }
  }
  Tell(plan);
  return plan.news.changed_jobs.empty() ? next
                                        : std::min(next, now + kRetryCommit);
}

void Scheduler::ForgivePause(absl::Time from, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  away_.Note(from, now);
  NoteAllStatesSoon();
  for (auto& [job_id, job] : jobs_) {
    const LiveJob before = job;
    ForgiveLeases(job, now);
    index_.Change(before, job);
    due_.Set(job_id, DueOf(job, now));
  }
}

// Times that are still to come are from before the clock was set back.
void Scheduler::ForgiveLeases(LiveJob& job, absl::Time now) {
  job.job.create_time = std::min(job.job.create_time, now);
  for (LiveTask& task : job.tasks) {
    TaskRecord& record = task.record;
    record.ready_time = std::min(record.ready_time, now);
    record.not_before = std::min(record.not_before, now + options_.retry_max);
    if (record.state != v1::LEASED) continue;
    record.attempt_start_time = std::min(record.attempt_start_time, now);
    record.lease_deadline = now + options_.lease;
  }
}

AwayTime Scheduler::Away(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  away_.NoteHere(now);
  return away_;
}

void Scheduler::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  KeepStates();
}

void Scheduler::RefreshLeases(StoredJob& job) {
  absl::MutexLock lock(&mutex_);
  const auto live = jobs_.find(job.job.job_id);
  if (live == jobs_.end()) return;
  const std::vector<LiveTask>& tasks = live->second.tasks;
  for (size_t i = 0; i < tasks.size() && i < job.tasks.size(); ++i) {
    if (tasks[i].record.attempt != job.tasks[i].attempt) continue;
    job.tasks[i].lease_deadline = tasks[i].record.lease_deadline;
  }
}

}  // namespace optfarm::server
