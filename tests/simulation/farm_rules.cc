#include "tests/simulation/farm_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rpc/proto_time.h"

namespace optfarm::simulation {
namespace {

using ::optfarm::server::HasEnded;

// How much later than promised a deadline may be applied by a server that is
// well.
constexpr absl::Duration kLate = absl::Seconds(90);
// A call has the time when it came, and is served a little later.
constexpr absl::Duration kRounding = absl::Milliseconds(5);

bool MayFollow(v1::TaskState from, v1::TaskState to) {
  switch (to) {
    case v1::READY:
      return from == v1::BLOCKED || from == v1::LEASED;
    case v1::LEASED:
      return from == v1::READY;
    case v1::TASK_DONE:
      return from == v1::LEASED;
    case v1::TASK_FAILED:
      return from == v1::READY || from == v1::LEASED;
    case v1::TASK_CANCELLED:
      return from == v1::BLOCKED || from == v1::READY || from == v1::LEASED;
    default:
      return false;
  }
}

bool MayFollow(v1::JobState from, v1::JobState to) {
  if (to == v1::RUNNING) return from == v1::QUEUED;
  return HasEnded(to) && (from == v1::QUEUED || from == v1::RUNNING);
}

absl::Duration DeadlineOr(bool given, const google::protobuf::Duration& value,
                          absl::Duration fallback) {
  return given ? rpc::FromProtoDuration(value) : fallback;
}

// `holds`: the caller has the lease of the attempt that the verdict is of.
bool IsRight(const v1::TaskVerdict& verdict, const TaskEntry& task,
             bool holds) {
  switch (verdict.verdict()) {
    case v1::TaskVerdict::CONTINUE:
      // Without a deadline it says no more than: ask again. That is the answer
      // when the ended job cannot be read.
      return holds || !verdict.has_lease_deadline();
    case v1::TaskVerdict::COMPLETION_ACCEPTED:
      return task.accepted_attempt == verdict.attempt();
    case v1::TaskVerdict::STALE:
    case v1::TaskVerdict::CANCEL:
      return !holds;
    default:
      return true;
  }
}

}  // namespace

void FarmRules::Committed(const storage::WriteBatch& batch,
                          const absl::Status& status) {
  if (!status.ok()) {
    ++refused_;
    world_.Note("refused", absl::StatusCodeToString(status.code()));
    if (absl::IsAborted(status) || absl::IsAlreadyExists(status) ||
        absl::IsDataLoss(status) || absl::IsInternal(status)) {
      world_.Fail(absl::StrCat("a commit failed: ", status.ToString()));
    }
    in_doubt_.push_back(batch);
    return;
  }
  ++commits_;
  world_.Note("commit", "", static_cast<int64_t>(batch.events.size()));
  CheckBatch(batch);
  in_doubt_.clear();
  NoteTimes(batch);
  record_.Apply(batch);
  CheckDevices();
}

void FarmRules::CheckBatch(const storage::WriteBatch& batch) {
  CheckNewJobs(batch);
  Walk walk;
  for (const storage::NewJob& added : batch.new_jobs) {
    walk.jobs[added.job.job_id] = added.job.state;
    for (const storage::TaskRecord& task : added.tasks) {
      walk.tasks[task.task_id] = task.state;
    }
  }
  CheckEvents(batch, walk);
  CheckTasks(batch, walk);
  CheckResults(batch, walk);
}

void FarmRules::CheckNewJobs(const storage::WriteBatch& batch) {
  for (const storage::NewJob& added : batch.new_jobs) {
    const storage::JobRecord& job = added.job;
    if (record_.FindJob(job.job_id) != nullptr) {
      world_.Fail(absl::StrCat("job ", job.job_id, " is made twice"));
    }
    for (const auto& [job_id, known] : record_.jobs()) {
      // A key is known for as long as its job is kept.
      if (!job.client_request_id.empty() &&
          known.request_id == job.client_request_id && !MayBeGone(job_id)) {
        world_.Fail(absl::StrCat("request ", job.client_request_id,
                                 " made two jobs: ", job_id, " and ",
                                 job.job_id));
      }
    }
    if (record_.LiveJobs(job.project) >= max_live_of_project_ ||
        record_.LiveJobs("") >= options_.max_live_jobs) {
      world_.Fail(absl::StrCat("job ", job.job_id, " of ", job.project,
                               " is one too many"));
    }
  }
}

void FarmRules::CheckEvents(const storage::WriteBatch& batch, Walk& walk) {
  for (const storage::EventRecord& record : batch.events) {
    const JobEntry* job = record_.FindJob(record.job_id);
    const auto state = walk.jobs.try_emplace(
        record.job_id, job == nullptr ? v1::JOB_STATE_UNSPECIFIED : job->state);
    if (HasEnded(state.first->second)) {
      world_.Fail(absl::StrCat(
          "job ", record.job_id,
          " has an event after its end: ", record.event.ShortDebugString()));
    }
    if (record.event.has_job_state()) {
      CheckJobEvent(record.job_id, record.event, walk);
    } else if (record.event.has_task_state()) {
      CheckTaskEvent(record.event, walk);
    }
  }
  for (const storage::JobRecord& job : batch.jobs) {
    const auto told = walk.jobs.find(job.job_id);
    const JobEntry* known = record_.FindJob(job.job_id);
    const v1::JobState expected = told != walk.jobs.end() ? told->second
                                  : known != nullptr      ? known->state
                                                          : job.state;
    if (job.state != expected) {
      world_.Fail(absl::StrCat(
          "job ", job.job_id, " becomes ", v1::JobState_Name(job.state),
          " and its events say ", v1::JobState_Name(expected)));
    }
  }
}

void FarmRules::CheckJobEvent(const std::string& job_id,
                              const v1::JobEvent& event, Walk& walk) {
  const v1::JobStateChange& change = event.job_state();
  v1::JobState& state = walk.jobs[job_id];
  // The first event of a job tells the state in which it was made.
  const JobEntry* known = record_.FindJob(job_id);
  const bool first =
      known == nullptr && change.state() == state && state == v1::QUEUED;
  if (!first && !MayFollow(state, change.state())) {
    world_.Fail(absl::StrCat("job ", job_id, " goes from ",
                             v1::JobState_Name(state), " to ",
                             v1::JobState_Name(change.state())));
  }
  state = change.state();
  if (!HasEnded(state)) return;
  world_.Note("job ended", job_id, state);
  const std::string& message = change.failure().message();
  if (known != nullptr && absl::StrContains(message, "not finished within")) {
    const v1::Deadlines& deadlines = known->spec.deadlines();
    const absl::Duration limit =
        DeadlineOr(deadlines.has_job(), deadlines.job(), options_.job_limit);
    if (up_time_.AtMost(created_[job_id], world_.now()) + kRounding < limit) {
      world_.Fail(absl::StrCat("job ", job_id, " failed before its deadline"));
    }
  }
}

void FarmRules::CheckTaskEvent(const v1::JobEvent& event, Walk& walk) {
  const v1::TaskStateChange& change = event.task_state();
  const TaskEntry* known = record_.FindTask(event.task_id());
  const auto [state, added] = walk.tasks.try_emplace(
      event.task_id(),
      known == nullptr ? v1::TASK_STATE_UNSPECIFIED : known->state);
  if (!MayFollow(state->second, change.state())) {
    world_.Fail(absl::StrCat("task ", event.task_id(), " goes from ",
                             v1::TaskState_Name(state->second), " to ",
                             v1::TaskState_Name(change.state())));
  }
  state->second = change.state();
  if (change.state() == v1::TASK_DONE) ++walk.done[event.task_id()];
  // A task that is handed back tells why an earlier attempt failed.
  if (change.has_failure() && change.state() != v1::TASK_CANCELLED &&
      !absl::StartsWith(change.message(), "handed back")) {
    CheckWhyItEnded(event, change.failure());
  }
}

// A deadline that passed did not pass too early.
void FarmRules::CheckWhyItEnded(const v1::JobEvent& event,
                                const v1::Failure& failure) {
  const std::string& task_id = event.task_id();
  const JobEntry* job =
      record_.FindJob(std::string(server::JobIdOfTask(task_id)));
  if (job == nullptr) return;
  const v1::Deadlines& deadlines = job->spec.deadlines();
  absl::Duration limit = absl::ZeroDuration();
  absl::Time since = world_.now();
  const std::string& message = failure.message();
  if (absl::StrContains(message, "nobody took the task within")) {
    limit = DeadlineOr(deadlines.has_queue(), deadlines.queue(),
                       options_.queue_limit);
    since = ready_[task_id];
  } else if (absl::StrContains(message, "ran longer than")) {
    limit =
        DeadlineOr(deadlines.has_run(), deadlines.run(), options_.run_limit);
    since = leased_[task_id];
  } else if (absl::StrContains(message, "had not begun to work")) {
    limit = options_.provision_limit;
    since = leased_[task_id];
  } else if (absl::StrContains(message, "was not heard of for")) {
    const auto promised = promised_.find({task_id, event.attempt()});
    if (promised == promised_.end() ||
        world_.now() + kRounding >= promised->second) {
      return;
    }
    world_.Fail(absl::StrCat(
        "task ", task_id, " lost its lease ",
        absl::FormatDuration(promised->second - world_.now()), " too early"));
  }
  if (up_time_.AtMost(since, world_.now()) + kRounding < limit) {
    world_.Fail(absl::StrCat("task ", task_id, " failed too early: ", message));
  }
}

void FarmRules::CheckTasks(const storage::WriteBatch& batch, const Walk& walk) {
  for (const storage::TaskUpdate& update : batch.tasks) {
    const storage::TaskRecord& next = update.task;
    const auto told = walk.tasks.find(next.task_id);
    const TaskEntry* before = record_.FindTask(next.task_id);
    if (before == nullptr) {
      // Made and changed at once.
      continue;
    }
    const v1::TaskState expected =
        told == walk.tasks.end() ? before->state : told->second;
    if (next.state != expected) {
      world_.Fail(absl::StrCat(
          "task ", next.task_id, " becomes ", v1::TaskState_Name(next.state),
          " and its events say ", v1::TaskState_Name(expected)));
    }
    if (update.expected_state != before->state ||
        update.expected_attempt != before->attempt) {
      world_.Fail(absl::StrCat("task ", next.task_id,
                               " was changed from what it is not"));
    }
    if (next.attempt < before->attempt ||
        next.accepted_attempt > next.attempt ||
        next.accepted_attempt < before->accepted_attempt ||
        next.failed_attempts < before->failed_attempts ||
        next.failed_attempts > next.max_attempts) {
      world_.Fail(absl::StrCat("task ", next.task_id, " counts wrongly"));
    }
    const bool leased_anew =
        next.state == v1::LEASED && next.attempt > before->attempt;
    if (next.state == v1::LEASED && before->state == v1::LEASED &&
        !leased_anew && next.participant_id != before->participant_id) {
      world_.Fail(absl::StrCat("task ", next.task_id,
                               " changed hands without a new attempt"));
    }
    if (next.state == v1::LEASED && before->state != v1::LEASED &&
        next.attempt == before->attempt) {
      world_.Fail(absl::StrCat("task ", next.task_id,
                               " is leased twice as attempt ", next.attempt));
    }
  }
}

// A result comes with the completion of its task, once.
void FarmRules::CheckResults(const storage::WriteBatch& batch,
                             const Walk& walk) {
  for (const storage::MeasurementRecord& row : batch.measurements) {
    const TaskEntry* task = record_.FindTask(row.task_id);
    const auto done = walk.done.find(row.task_id);
    if (task == nullptr || task->results > 0 || done == walk.done.end() ||
        done->second != 1) {
      world_.Fail(absl::StrCat("task ", row.task_id,
                               " has a result without being done, or two"));
    }
  }
  for (const storage::ReportRecord& report : batch.reports) {
    const JobEntry* job = record_.FindJob(report.job_id);
    if (job != nullptr && job->has_report) {
      world_.Fail(absl::StrCat("job ", report.job_id, " has two reports"));
    }
  }
}

void FarmRules::NoteTimes(const storage::WriteBatch& batch) {
  for (const storage::NewJob& added : batch.new_jobs) {
    created_[added.job.job_id] = world_.now();
    for (const storage::TaskRecord& task : added.tasks) {
      ready_[task.task_id] = world_.now();
    }
  }
  for (const storage::EventRecord& record : batch.events) {
    if (!record.event.has_task_state()) continue;
    const v1::TaskState state = record.event.task_state().state();
    const std::string& task_id = record.event.task_id();
    if (state == v1::READY) ready_[task_id] = world_.now();
    if (state == v1::LEASED) leased_[task_id] = world_.now();
  }
}

void FarmRules::CheckDevices() {
  std::map<std::string, std::string> holders;
  for (const auto& [job_id, job] : record_.jobs()) {
    if (HasEnded(job.state)) continue;
    for (const auto& [task_id, task] : job.tasks) {
      if (task.state != v1::LEASED || task.device.empty()) continue;
      const auto [other, added] = holders.emplace(task.device, task_id);
      if (added) continue;
      world_.Fail(absl::StrCat("device ", task.device, " measures ", task_id,
                               " and ", other->second));
    }
  }
}

bool FarmRules::MayBeGone(const std::string& job_id) {
  const JobEntry* job = record_.FindJob(job_id);
  return job == nullptr ||
         (HasEnded(job->state) && job->end_time < kept_since_);
}

void FarmRules::Restarted(storage::MetadataStore& store) {
  std::string difference = record_.Compare(store, kept_since_);
  for (auto batch = in_doubt_.rbegin();
       !difference.empty() && batch != in_doubt_.rend(); ++batch) {
    FarmRecord with = record_;
    with.Apply(*batch);
    if (!with.Compare(store, kept_since_).empty()) continue;
    world_.Note("in doubt, and kept");
    NoteTimes(*batch);
    record_ = std::move(with);
    difference.clear();
  }
  in_doubt_.clear();
  if (!difference.empty()) {
    world_.Fail(absl::StrCat("after a restart: ", difference));
  }
  for (const auto& [request_id, job_id] : accepted_) {
    const auto match = store.FindClientRequest(request_id);
    const bool known = record_.FindJob(job_id) != nullptr;
    if (!match.ok() ||
        (known && (!match->has_value() || (*match)->job_id != job_id))) {
      world_.Fail(absl::StrCat("request ", request_id,
                               " no longer leads to its job ", job_id));
    }
  }
}

void FarmRules::Promised(const std::string& task_id, int attempt,
                         absl::Time until) {
  absl::Time& promised = promised_[{task_id, attempt}];
  promised = std::max(promised, until);
}

void FarmRules::Answered(const v1::SynchronizeRequest& request,
                         const v1::SynchronizeResponse& response) {
  for (const v1::LeasedTask& lease : response.new_tasks()) {
    const TaskEntry* task = record_.FindTask(lease.task_id());
    if (task == nullptr || task->state != v1::LEASED ||
        task->attempt != lease.attempt() ||
        task->participant_id != request.participant_id()) {
      world_.Fail(absl::StrCat(request.participant_id(), " is given ",
                               lease.task_id(), " attempt ", lease.attempt(),
                               ", which it does not hold"));
    }
  }
  for (const v1::TaskVerdict& verdict : response.verdicts()) {
    const TaskEntry* task = record_.FindTask(verdict.task_id());
    if (task == nullptr) continue;
    const bool holds = task->state == v1::LEASED &&
                       task->attempt == verdict.attempt() &&
                       task->participant_id == request.participant_id();
    const bool right = IsRight(verdict, *task, holds);
    if (!right) {
      world_.Fail(absl::StrCat(request.participant_id(), " is told ",
                               v1::TaskVerdict::Verdict_Name(verdict.verdict()),
                               " of ", verdict.task_id(), " attempt ",
                               verdict.attempt(),
                               ", and the store says otherwise"));
    }
  }
}

void FarmRules::Accepted(const std::string& request_id,
                         const std::string& job_id) {
  const auto [known, added] = accepted_.emplace(request_id, job_id);
  if (known->second != job_id && MayBeGone(known->second)) {
    known->second = job_id;
  }
  if (known->second != job_id) {
    world_.Fail(absl::StrCat("request ", request_id, " is answered with ",
                             job_id, " and was with ", known->second));
  }
  if (record_.FindJob(job_id) == nullptr) {
    world_.Fail(absl::StrCat("job ", job_id, " is accepted and not there"));
  }
}

void FarmRules::SawEvents(const std::string& job_id, int64_t after,
                          const std::vector<v1::JobEvent>& events) {
  const JobEntry* job = record_.FindJob(job_id);
  if (job == nullptr) return;
  for (const v1::JobEvent& event : events) {
    ++after;
    const auto index = static_cast<size_t>(after - 1);
    if (event.sequence() != after || index >= job->events.size() ||
        job->events[index] != HashOf(event)) {
      world_.Fail(absl::StrCat("event ", after, " of job ", job_id,
                               " is missing, or is another one"));
      return;
    }
  }
}

void FarmRules::CheckDeadlines() {
  const absl::Time now = world_.now();
  for (const auto& [job_id, job] : record_.jobs()) {
    if (HasEnded(job.state)) continue;
    const v1::Deadlines& deadlines = job.spec.deadlines();
    if (up_time_.AtLeast(created_[job_id], now) >
        kLate + DeadlineOr(deadlines.has_job(), deadlines.job(),
                           options_.job_limit)) {
      world_.Fail(absl::StrCat("job ", job_id, " goes on after its deadline"));
    }
    for (const auto& [task_id, task] : job.tasks) {
      if (task.state == v1::LEASED) {
        const auto promised = promised_.find({task_id, task.attempt});
        const absl::Time until = promised == promised_.end()
                                     ? leased_[task_id] + options_.lease
                                     : promised->second;
        if (until < now && up_time_.AtLeast(until, now) > kLate) {
          world_.Fail(absl::StrCat("task ", task_id, " is held by ",
                                   task.participant_id,
                                   " long after its lease"));
        }
        if (task.progress < 1 &&
            up_time_.AtLeast(leased_[task_id], now) >
                kLate + DeadlineOr(deadlines.has_run(), deadlines.run(),
                                   options_.run_limit)) {
          world_.Fail(absl::StrCat("task ", task_id, " runs for too long"));
        }
      } else if (task.state == v1::READY &&
                 up_time_.AtLeast(ready_[task_id], now) >
                     kLate + DeadlineOr(deadlines.has_queue(),
                                        deadlines.queue(),
                                        options_.queue_limit)) {
        world_.Fail(absl::StrCat("task ", task_id, " waits for too long"));
      }
    }
  }
}

}  // namespace optfarm::simulation
