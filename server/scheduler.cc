#include "server/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "server/device_choice.h"
#include "server/device_view.h"
#include "server/job_spec_check.h"
#include "server/log_text.h"
#include "server/names.h"
#include "server/proto_time.h"
#include "server/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::StoredJob;
using ::optfarm::storage::TaskRecord;

constexpr absl::Duration kLongestTick = absl::Minutes(1);
constexpr absl::Duration kRetryCommit = absl::Seconds(1);
constexpr size_t kMaxReasonBytes = 1000;

// 60 random bits: enough that two jobs never share one, short enough to type.
std::string NewJobId() {
  static constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  absl::BitGen random;
  std::string id = "j";
  for (int i = 0; i < 12; ++i) id += kDigits[absl::Uniform(random, 0, 32)];
  return id;
}

TaskRecord NewTask(const std::string& job_id, int max_attempts,
                   absl::Time now) {
  TaskRecord task;
  task.job_id = job_id;
  task.max_attempts = max_attempts;
  task.create_time = now;
  return task;
}

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

}  // namespace

Scheduler::Scheduler(storage::MetadataStore& store, storage::BlobStore& blobs,
                     SchedulingOptions options, std::string server_version)
    : store_(store),
      blobs_(blobs),
      options_(options),
      server_version_(std::move(server_version)) {}

absl::Status Scheduler::Load(absl::Time now) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<StoredJob> jobs, store_.LoadLiveJobs());
  OPTFARM_ASSIGN_OR_RETURN(auto devices, store_.ListDevices());
  OPTFARM_ASSIGN_OR_RETURN(auto recipes, store_.ListRecipes());
  absl::MutexLock lock(&mutex_);
  fleet_.Load(std::move(devices), std::move(recipes));
  if (!jobs.empty()) LogInfo("going on with ", jobs.size(), " jobs");
  for (StoredJob& job : jobs) AddLiveJob(std::move(job), now);
  return absl::OkStatus();
}

void Scheduler::AddLiveJob(StoredJob stored, absl::Time now) {
  LiveJob live;
  live.spec = std::make_shared<v1::JobSpec>(std::move(stored.job.spec));
  live.job = std::move(stored.job);
  live.job.spec.Clear();
  last_job_number_ = std::max(last_job_number_, live.job.number);
  for (TaskRecord& record : stored.tasks) {
    if (record.state == v1::LEASED)
      record.lease_deadline = now + options_.lease;
    live.tasks.push_back(LiveTask{std::move(record)});
  }
  index_.Add(live);
  jobs_[live.job.job_id] = std::move(live);
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
    plan.changed.push_back(job_id);
    change->AppendTo(plan.batch);
  }
  if (!plan.batch.empty()) {
    const absl::Time begin = absl::Now();
    const absl::Status status = store_.Commit(plan.batch);
    if (absl::IsAborted(status)) ReloadAfterConflict(plan);
    if (!status.ok()) {
      plan.changed.clear();
      return absl::IsAborted(status) ? absl::UnavailableError(status.message())
                                     : status;
    }
    if (observer_) observer_(plan.batch, absl::Now() - begin);
  }
  TakeOver(plan);
  return absl::OkStatus();
}

QueueNumbers Scheduler::Numbers(absl::Time now) {
  QueueNumbers numbers;
  absl::MutexLock lock(&mutex_);
  for (const auto& [job_id, live] : jobs_) {
    ++(live.job.state == v1::QUEUED ? numbers.queued_jobs
                                    : numbers.running_jobs);
    for (const LiveTask& live_task : live.tasks) {
      const storage::TaskRecord& task = live_task.record;
      QueueNumbers::Kind& kind =
          task.kind == v1::OPTIMIZE ? numbers.optimize : numbers.benchmark;
      if (task.state == v1::LEASED) ++kind.leased;
      if (task.state != v1::READY) continue;
      ++kind.ready;
      kind.oldest = std::max(kind.oldest, now - task.ready_time);
    }
  }
  return numbers;
}

std::pair<int, int> Scheduler::CountParticipants(absl::Time since) {
  absl::MutexLock lock(&mutex_);
  return {fleet_.CountParticipants(v1::SynchronizeRequest::WORKER, since),
          fleet_.CountParticipants(v1::SynchronizeRequest::AGENT, since)};
}

void Scheduler::TakeOver(Plan& plan) {
  for (auto& [job_id, change] : plan.changes) {
    const auto old = jobs_.find(job_id);
    if (old != jobs_.end()) index_.Remove(old->second);
    LiveJob job = std::move(*change).Release();
    if (HasEnded(job.job.state)) {
      jobs_.erase(job_id);
      continue;
    }
    index_.Add(job);
    jobs_[job_id] = std::move(job);
  }
}

// The store had another idea of a task than we: somebody else writes to it, or
// we have a defect. Believe the store.
void Scheduler::ReloadAfterConflict(const Plan& plan) {
  for (const auto& [job_id, change] : plan.changes) {
    LogError("job ", job_id, " differs in the database; reading it again");
    const auto old = jobs_.find(job_id);
    if (old != jobs_.end()) {
      index_.Remove(old->second);
      jobs_.erase(old);
    }
    absl::StatusOr<StoredJob> stored = store_.GetJob(job_id);
    if (stored.ok() && !HasEnded(stored->job.state)) {
      AddLiveJob(*std::move(stored), plan.now);
    }
  }
}

void Scheduler::Tell(const Plan& plan) {
  if (plan.changed.empty()) return;
  for (const storage::EventRecord& event : plan.batch.events) LogEvent(event);
  if (listener_) listener_(plan.changed);
}

absl::StatusOr<std::optional<SubmitResult>> Scheduler::FindSubmitted(
    const std::string& client_request_id, const std::string& spec_digest) {
  if (client_request_id.empty()) return std::nullopt;
  OPTFARM_ASSIGN_OR_RETURN(const auto match,
                           store_.FindClientRequest(client_request_id));
  if (!match.has_value()) return std::nullopt;
  if (match->spec_digest == spec_digest) {
    return SubmitResult{match->job_id, true};
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "client_request_id ", Quoted(client_request_id),
      " was used for another job (", match->job_id,
      "); use a new one for every new job, and the same one only for a retry"));
}

absl::StatusOr<SubmitResult> Scheduler::Submit(const Submission& submission,
                                               absl::Time now) {
  Plan plan(now);
  absl::StatusOr<SubmitResult> result;
  {
    absl::MutexLock lock(&mutex_);
    result = Insert(submission, plan);
  }
  Tell(plan);
  return result;
}

absl::StatusOr<SubmitResult> Scheduler::Insert(const Submission& submission,
                                               Plan& plan) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::optional<SubmitResult> known,
      FindSubmitted(submission.client_request_id, submission.spec_digest));
  if (known.has_value()) return *known;
  OPTFARM_RETURN_IF_ERROR(CheckDevicesExist(submission.spec));
  OPTFARM_RETURN_IF_ERROR(CheckRoom(submission));
  storage::NewJob job = MakeJob(submission, plan.now);
  if (!submission.spec.no_cache()) AnswerFromCache(submission, plan, job);

  LiveJob live;
  live.job = job.job;
  live.job.spec.Clear();
  live.job.number = ++last_job_number_;
  live.spec = std::make_shared<v1::JobSpec>(submission.spec);
  for (const TaskRecord& task : job.tasks) live.tasks.push_back(LiveTask{task});
  auto change =
      std::make_unique<JobChange>(std::move(live), plan.now, options_);
  change->Begin();
  const std::string job_id = job.job.job_id;
  plan.changes[job_id] = std::move(change);
  plan.batch.new_jobs.push_back(std::move(job));
  OPTFARM_RETURN_IF_ERROR(Annotate(Commit(plan), "accepting the job"));
  return SubmitResult{job_id, false};
}

absl::Status Scheduler::CheckRoom(const Submission& submission) {
  if (static_cast<int>(jobs_.size()) >= options_.max_live_jobs) {
    return absl::ResourceExhaustedError(absl::StrCat(
        jobs_.size(), " jobs are waiting or running and the server takes ",
        options_.max_live_jobs, "; try again when some have ended"));
  }
  if (submission.max_live_jobs == 0) return absl::OkStatus();
  int live = 0;
  for (const auto& [job_id, job] : jobs_) {
    live += job.job.project == submission.project;
  }
  if (live < submission.max_live_jobs) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      live, " jobs of the project ", submission.project,
      " are waiting or running, as many as a project may have; try again when "
      "some have ended"));
}

storage::NewJob Scheduler::MakeJob(const Submission& submission,
                                   absl::Time now) {
  const v1::JobSpec& spec = submission.spec;
  storage::NewJob job;
  job.job.job_id = NewJobId();
  job.job.client_request_id = submission.client_request_id;
  job.job.spec_digest = submission.spec_digest;
  job.job.project = submission.project;
  job.job.spec = spec;
  job.job.create_time = now;
  const int max_attempts =
      spec.max_attempts() > 0 ? spec.max_attempts() : options_.max_attempts;
  TaskRecord optimize = NewTask(job.job.job_id, max_attempts, now);
  optimize.task_id = OptimizeTaskId(job.job.job_id);
  optimize.state = v1::READY;
  optimize.ready_time = now;
  job.tasks.push_back(std::move(optimize));
  for (const std::string& device : spec.benchmark().devices()) {
    TaskRecord task = NewTask(job.job.job_id, max_attempts, now);
    task.task_id = BenchmarkTaskId(job.job.job_id, device);
    task.ordinal = static_cast<int>(job.tasks.size());
    task.kind = v1::BENCHMARK;
    task.device = device;
    job.tasks.push_back(std::move(task));
  }
  for (const storage::BlobId& id : BlobsOf(spec))
    job.blobs.push_back(id.sha256);
  return job;
}

// Takes over the report of an earlier job that did the same work with the same
// tool, if all it made is still here.
void Scheduler::AnswerFromCache(const Submission& submission, Plan& plan,
                                storage::NewJob& job) {
  const std::string& version = fleet_.worker_version().empty()
                                   ? server_version_
                                   : fleet_.worker_version();
  const auto found = store_.FindAction(submission.action_digest, version);
  if (!found.ok() || !found->has_value()) return;
  const absl::StatusOr<v1::Report> report = store_.GetReport(**found);
  if (!report.ok()) return;
  std::vector<std::string> made;
  for (const v1::Artifact& artifact : report->artifacts()) {
    const auto present = blobs_.Contains(
        {artifact.digest().sha256(), artifact.digest().size_bytes()}, plan.now);
    if (!present.value_or(false)) return;
    made.push_back(artifact.digest().sha256());
  }
  const v1::Digest& model = report->optimized_model();
  if (!blobs_.Contains({model.sha256(), model.size_bytes()}, plan.now)
           .value_or(false)) {
    return;
  }
  made.push_back(model.sha256());
  job.blobs.insert(job.blobs.end(), made.begin(), made.end());
  job.job.from_cache = true;
  job.job.cached_from_job_id = **found;
  job.job.gates.assign(report->gates().begin(), report->gates().end());
  job.tasks[0].state = v1::TASK_DONE;
  job.tasks[0].progress = 1;
  job.tasks[0].end_time = plan.now;
  job.tasks[0].artifacts.assign(report->artifacts().begin(),
                                report->artifacts().end());
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    job.tasks[i].state = v1::READY;
    job.tasks[i].ready_time = plan.now;
  }
  plan.batch.reports.push_back({job.job.job_id, *report});
}

absl::Status Scheduler::CheckDevicesExist(const v1::JobSpec& spec) {
  for (const std::string& device : spec.benchmark().devices()) {
    if (fleet_.HasDeviceFor(device)) continue;
    const std::vector<std::string> known = fleet_.WaysToAskForDevices();
    const std::optional<absl::string_view> pool = PoolOf(device);
    return absl::NotFoundError(absl::StrCat(
        pool.has_value() ? "no device has the tag '" : "there is no device '",
        pool.value_or(device), "'", NearestNamesHint(device, known),
        known.empty() ? "; no agent has registered one yet" : ""));
  }
  return absl::OkStatus();
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
    fleet_.LogAlerts(options_.alert_after, now);
    for (const auto& [job_id, job] : jobs_) {
      const JobLimits limits = LimitsOf(*job.spec, options_);
      absl::Time due = job.job.create_time + limits.job;
      for (const LiveTask& task : job.tasks) {
        due = std::min(due, NextDue(task.record, limits, now));
      }
      if (due <= now) {
        Edit(plan, job_id)->Expire();
      } else {
        next = std::min(next, due);
      }
    }
    if (const absl::Status status = Commit(plan); !status.ok()) {
      LogError("applying deadlines: ", status.message());
      next = now + kRetryCommit;
    }
  }
  Tell(plan);
  return plan.changed.empty() ? next : std::min(next, now + kRetryCommit);
}

void Scheduler::ForgivePause(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  for (auto& [job_id, job] : jobs_) {
    for (LiveTask& task : job.tasks) {
      if (task.record.state != v1::LEASED) continue;
      task.record.lease_deadline =
          std::max(task.record.lease_deadline, now + options_.lease);
    }
  }
}

void Scheduler::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
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

v1::Device Scheduler::DescribeDevice(
    const storage::DeviceRecord& record, absl::Time now,
    const std::optional<std::string>& project) {
  std::string task_id;
  const TaskRef* task = index_.LeasedOnDevice(record.info.name());
  if (task != nullptr) {
    const LiveJob& job = jobs_.at(task->job_id);
    if (project.value_or(job.job.project) == job.job.project) {
      task_id = job.tasks[task->index].record.task_id;
    }
  }
  return ViewDevice(record, task_id, options_, now);
}

std::vector<v1::Device> Scheduler::Devices(
    absl::Time now, const std::optional<std::string>& project) {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::Device> devices;
  for (const auto& [name, record] : fleet_.devices()) {
    devices.push_back(DescribeDevice(record, now, project));
  }
  return devices;
}

absl::StatusOr<v1::Device> Scheduler::FindDevice(
    const std::string& name, absl::Time now,
    const std::optional<std::string>& project) {
  absl::MutexLock lock(&mutex_);
  const storage::DeviceRecord* record = fleet_.FindDevice(name);
  if (record != nullptr) return DescribeDevice(*record, now, project);
  return absl::NotFoundError(
      absl::StrCat("there is no device ", Quoted(name),
                   NearestNamesHint(name, fleet_.DeviceNames())));
}

absl::StatusOr<v1::Device> Scheduler::ChangeDevice(
    const v1::ChangeDeviceRequest& change, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (fleet_.FindDevice(change.name()) == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("there is no device ", Quoted(change.name()),
                     NearestNamesHint(change.name(), fleet_.DeviceNames())));
  }
  OPTFARM_ASSIGN_OR_RETURN(const storage::DeviceRecord next,
                           fleet_.Changed(change, now));
  storage::WriteBatch batch;
  batch.devices.push_back(next);
  OPTFARM_RETURN_IF_ERROR(
      Annotate(store_.Commit(batch), "changing the device"));
  fleet_.Replace(next);
  LogInfo("device ", change.name(), ": ",
          v1::ChangeDeviceRequest::Change_Name(change.change()));
  return DescribeDevice(next, now, std::nullopt);
}

absl::StatusOr<v1::Recipe> Scheduler::FindRecipe(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const v1::Recipe* recipe = fleet_.FindRecipe(name);
  if (recipe != nullptr) return *recipe;
  const std::vector<std::string> known = fleet_.RecipeNames();
  return absl::NotFoundError(absl::StrCat(
      "no worker offers a recipe ", Quoted(name), NearestNamesHint(name, known),
      known.empty() ? "; no worker has registered yet: send the recipe itself"
                    : ""));
}

}  // namespace optfarm::server
