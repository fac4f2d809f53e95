// The pull call of workers and agents: what becomes of what they hold, and what
// they get.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/completion_check.h"
#include "server/device_choice.h"
#include "server/job_spec_check.h"
#include "server/log_text.h"
#include "server/names.h"
#include "server/proto_time.h"
#include "server/scheduler.h"
#include "server/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::BlobId;
using ::optfarm::storage::TaskRecord;

// Optimize tasks in one answer; with kMaxSpecBytes of job_spec_check.cc this
// keeps it within the message limit.
constexpr int kMaxGrantsACall = 8;
constexpr size_t kMaxFailureBytes = 4000;
// What workers call the samples that devices compare their answers with.
constexpr absl::string_view kFloatCheck = "check_float.pb";
constexpr absl::string_view kOptimizedCheck = "check_optimized.pb";
// Calls in one commit.
constexpr size_t kMaxTogether = 64;
constexpr size_t kMaxKnownCallers = 20000;

void SetLease(v1::TaskVerdict& verdict, absl::Time now,
              absl::Duration duration) {
  *verdict.mutable_lease_deadline() = ToTimestamp(now + duration);
  *verdict.mutable_lease_remaining() = ToProtoDuration(duration);
}

void Refuse(v1::TaskVerdict& verdict, v1::TaskVerdict::Verdict kind,
            absl::string_view message) {
  verdict.set_verdict(kind);
  verdict.set_message(std::string(message));
}

bool Lists(const v1::SynchronizeRequest& request, const TaskRecord& task) {
  return std::any_of(request.held().begin(), request.held().end(),
                     [&](const v1::HeldTask& held) {
                       return held.task_id() == task.task_id &&
                              held.attempt() == task.attempt;
                     });
}

const v1::DeviceStatus* FindStatus(const v1::SynchronizeRequest& request,
                                   absl::string_view device) {
  for (const v1::DeviceStatus& status : request.devices()) {
    if (status.info().name() == device) return &status;
  }
  return nullptr;
}

// The blobs that are not here; a blob with another size than claimed is an
// error.
absl::StatusOr<std::vector<BlobId>> Missing(storage::BlobStore& blobs,
                                            const std::vector<BlobId>& wanted,
                                            absl::Time now) {
  std::vector<BlobId> missing;
  for (const BlobId& id : wanted) {
    OPTFARM_ASSIGN_OR_RETURN(const bool present, blobs.Contains(id, now));
    if (!present) missing.push_back(id);
  }
  return missing;
}

v1::Failure Shortened(const v1::Failure& failure) {
  v1::Failure result = failure;
  result.set_message(std::string(CutText(failure.message(), kMaxFailureBytes)));
  result.set_code(std::string(CutText(failure.code(), 64)));
  return result;
}

}  // namespace

int64_t Scheduler::BeginCall(const std::string& participant_id) {
  absl::MutexLock lock(&mutex_);
  // Forgetting the numbers is harmless: they only order calls that overlap.
  if (newest_call_.size() > kMaxKnownCallers) newest_call_.clear();
  return newest_call_[participant_id] = ++last_call_;
}

// Making a change durable takes as long for one call as for many. Whoever gets
// the lock serves all who wait for it, in one commit.
absl::StatusOr<SynchronizeResult> Scheduler::Synchronize(
    const v1::SynchronizeRequest& request, int64_t call, absl::Time now) {
  OPTFARM_RETURN_IF_ERROR(CheckSynchronizeRequest(request));
  Waiting mine{request, call, now, false, SynchronizeResult(), {}};
  {
    absl::MutexLock lock(&waiting_mutex_);
    waiting_.push_back(&mine);
  }
  std::vector<std::unique_ptr<Plan>> plans;
  {
    absl::MutexLock lock(&mutex_);
    while (!mine.done) {
      const std::vector<Waiting*> group = NextGroup();
      plans.push_back(std::make_unique<Plan>(now));
      const bool kept = SynchronizeTogether(group, *plans.back()).ok();
      if (kept || group.size() == 1) continue;
      // What is wrong with one of them is not the others' fault.
      for (Waiting* waiting : group) {
        plans.push_back(std::make_unique<Plan>(now));
        (void)SynchronizeTogether({waiting}, *plans.back());
      }
    }
  }
  for (const std::unique_ptr<Plan>& plan : plans) Tell(*plan);
  return std::move(mine.result);
}

// Those who came first, no participant twice.
std::vector<Scheduler::Waiting*> Scheduler::NextGroup() {
  absl::MutexLock lock(&waiting_mutex_);
  std::vector<Waiting*> group;
  absl::flat_hash_set<std::string> participants;
  while (
      !waiting_.empty() && group.size() < kMaxTogether &&
      participants.insert(waiting_.front()->request.participant_id()).second) {
    group.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return group;
}

// All that is reported is taken in before anything is given, so that nobody is
// given what another one's report ends.
absl::Status Scheduler::SynchronizeTogether(const std::vector<Waiting*>& group,
                                            Plan& plan) {
  std::vector<Waiting*> current;
  for (Waiting* waiting : group) {
    waiting->done = true;
    waiting->granted.clear();
    const auto newest = newest_call_.find(waiting->request.participant_id());
    if (newest != newest_call_.end() && newest->second > waiting->call) {
      waiting->result =
          absl::AbortedError("a newer call of the same participant is open");
      continue;
    }
    waiting->result = SynchronizeResult();
    current.push_back(waiting);
  }
  for (Waiting* waiting : current) TakeIn(*waiting, plan);
  for (Waiting* waiting : current) GrantTo(*waiting, plan);
  const absl::Status committed =
      Annotate(Commit(plan), "keeping what was reported");
  for (Waiting* waiting : current) {
    if (committed.ok()) {
      waiting->result = Answer(*waiting, plan.now);
    } else {
      waiting->result = committed;
    }
  }
  return committed;
}

void Scheduler::TakeIn(Waiting& waiting, Plan& plan) {
  fleet_.TakeIn(waiting.request, plan.now, plan.batch);
  for (const v1::HeldTask& held : waiting.request.held()) {
    *waiting.result->response.add_verdicts() =
        Judge(waiting.request, held, plan);
  }
  waiting.granted = SettleUnlisted(waiting.request, plan);
}

void Scheduler::GrantTo(Waiting& waiting, Plan& plan) {
  if (draining_) return;
  if (waiting.request.kind() == v1::SynchronizeRequest::WORKER) {
    GrantToWorker(waiting.request, plan, waiting.granted);
  } else {
    GrantToAgent(waiting.request, plan, waiting.granted);
  }
}

absl::StatusOr<SynchronizeResult> Scheduler::Answer(Waiting& waiting,
                                                    absl::Time now) {
  const v1::SynchronizeRequest& request = waiting.request;
  SynchronizeResult result = *std::move(waiting.result);
  v1::SynchronizeResponse& response = result.response;
  bool news = draining_;
  for (const v1::TaskVerdict& verdict : response.verdicts()) {
    news |= verdict.verdict() != v1::TaskVerdict::CONTINUE;
  }
  for (const TaskRef& ref : waiting.granted) {
    // Told again, and then ended by what another one reported.
    if (!jobs_.contains(ref.job_id)) continue;
    OPTFARM_ASSIGN_OR_RETURN(*response.add_new_tasks(), Describe(ref, now));
  }
  const bool granted = !response.new_tasks().empty();
  const bool holds = !request.held().empty() || granted;
  const absl::Duration wanted = request.has_long_poll()
                                    ? FromProtoDuration(request.long_poll())
                                    : absl::ZeroDuration();
  // A caller that holds leases must be back in time to renew them.
  const absl::Duration longest =
      holds ? options_.lease / 3 : options_.max_long_poll;
  result.hold = news || granted
                    ? absl::ZeroDuration()
                    : std::clamp(wanted, absl::ZeroDuration(), longest);
  response.set_drain(draining_);
  response.set_server_version(server_version_);
  *response.mutable_long_poll() = ToProtoDuration(options_.max_long_poll);
  const bool polls = wanted > absl::ZeroDuration() && !draining_;
  *response.mutable_call_again_after() = ToProtoDuration(
      polls ? absl::ZeroDuration()
            : std::min(options_.idle_interval, options_.lease / 3));
  return result;
}

v1::TaskVerdict Scheduler::Judge(const v1::SynchronizeRequest& request,
                                 const v1::HeldTask& held, Plan& plan) {
  v1::TaskVerdict verdict;
  verdict.set_task_id(held.task_id());
  verdict.set_attempt(held.attempt());
  JobChange* change = Edit(plan, std::string(JobIdOfTask(held.task_id())));
  size_t index = 0;
  if (change != nullptr) {
    const std::vector<LiveTask>& tasks = change->job().tasks;
    while (index < tasks.size() &&
           tasks[index].record.task_id != held.task_id()) {
      ++index;
    }
    if (index == tasks.size()) change = nullptr;
  }
  if (change == nullptr) {
    JudgeEnded(held, verdict);
    return verdict;
  }
  const TaskRecord& task = change->task(index).record;
  if (held.has_completion() && held.attempt() == task.accepted_attempt &&
      task.participant_id == request.participant_id()) {
    verdict.set_verdict(v1::TaskVerdict::COMPLETION_ACCEPTED);
  } else if (task.state == v1::TASK_CANCELLED &&
             task.attempt == held.attempt()) {
    Refuse(verdict, v1::TaskVerdict::CANCEL, "the job has ended");
  } else if (task.state != v1::LEASED || task.attempt != held.attempt() ||
             task.participant_id != request.participant_id()) {
    Refuse(verdict, v1::TaskVerdict::STALE,
           absl::StrCat("attempt ", held.attempt(),
                        " is not the current lease; the task is ",
                        v1::TaskState_Name(task.state), " with attempt ",
                        task.attempt));
  } else {
    change->Renew(index, /*acknowledged=*/true);
    change->TakeNews(index, TaskNews{held.progress(), held.progress_message(),
                                     held.log_chunk(), held.log_offset()});
    verdict.set_verdict(v1::TaskVerdict::CONTINUE);
    SetLease(verdict, plan.now, options_.lease);
    if (held.has_completion()) {
      TakeCompletion(request, held, index, *change, plan, verdict);
    }
  }
  return verdict;
}

// The task belongs to a job that has ended, or to none.
void Scheduler::JudgeEnded(const v1::HeldTask& held, v1::TaskVerdict& verdict) {
  const absl::StatusOr<TaskRecord> task = store_.GetTask(held.task_id());
  if (task.ok() && held.has_completion() &&
      held.attempt() == task->accepted_attempt) {
    verdict.set_verdict(v1::TaskVerdict::COMPLETION_ACCEPTED);
  } else if (task.ok() && held.attempt() == task->attempt) {
    Refuse(verdict, v1::TaskVerdict::CANCEL, "the job has ended");
  } else if (task.ok() || absl::IsNotFound(task.status())) {
    Refuse(verdict, v1::TaskVerdict::STALE,
           absl::StrCat("there is no lease with attempt ", held.attempt(),
                        " of task ", Quoted(held.task_id())));
  } else {
    // Not known now; the holder asks again.
    LogError("looking up task ", Quoted(held.task_id()), ": ",
             task.status().message());
    verdict.set_verdict(v1::TaskVerdict::CONTINUE);
  }
}

void Scheduler::TakeCompletion(const v1::SynchronizeRequest& request,
                               const v1::HeldTask& held, size_t index,
                               JobChange& change, Plan& plan,
                               v1::TaskVerdict& verdict) {
  const v1::Completion& completion = held.completion();
  absl::StatusOr<std::vector<BlobId>> missing = CheckCompletion(
      completion, change.task(index).record, *change.job().spec);
  if (missing.ok()) missing = Missing(blobs_, *missing, plan.now);
  if (!missing.ok()) {
    Refuse(verdict, v1::TaskVerdict::COMPLETION_REFUSED,
           missing.status().message());
    verdict.clear_lease_deadline();
    verdict.clear_lease_remaining();
    change.FailAttempt(
        index,
        MakeFailure(v1::Failure::INTERNAL, "INTERNAL",
                    absl::StrCat(request.name(),
                                 " sent a result that cannot be taken: ",
                                 missing.status().message())),
        "failed");
    return;
  }
  if (!missing->empty()) {
    Refuse(verdict, v1::TaskVerdict::COMPLETION_REFUSED,
           absl::StrCat(missing->size(), " blobs are missing; upload them"));
    for (const BlobId& id : *missing) {
      *verdict.add_missing_blobs() = ToProto(id);
    }
    return;
  }
  verdict.Clear();
  verdict.set_task_id(held.task_id());
  verdict.set_attempt(held.attempt());
  verdict.set_verdict(v1::TaskVerdict::COMPLETION_ACCEPTED);
  change.MarkAccepted(index);
  change.KeepArtifacts(index, completion.artifacts());
  NoteDevice(completion, change.task(index).record, plan);
  switch (completion.outcome_case()) {
    case v1::Completion::kReport:
      change.CompleteOptimize(index, completion.report());
      RememberAction(request, change, plan);
      break;
    case v1::Completion::kBenchmark:
      change.CompleteBenchmark(index, completion.benchmark());
      break;
    case v1::Completion::kFailure:
      change.FailAttempt(index, Shortened(completion.failure()), "failed");
      break;
    default:
      change.HandBack(
          index, CutText(completion.released().reason(), kMaxFailureBytes));
      break;
  }
}

// What a completion says about the device it comes from. A user's error says
// that the device worked.
void Scheduler::NoteDevice(const v1::Completion& completion,
                           const storage::TaskRecord& task, Plan& plan) {
  if (task.kind != v1::BENCHMARK || completion.has_released()) return;
  const bool failed = completion.has_failure() &&
                      completion.failure().kind() == v1::Failure::INTERNAL;
  fleet_.NoteOutcome(
      task.device, !failed,
      failed ? CutText(completion.failure().message(), kMaxFailureBytes) : "",
      plan.now, plan.batch);
}

void Scheduler::RememberAction(const v1::SynchronizeRequest& request,
                               const JobChange& change, Plan& plan) {
  storage::ActionRecord& action = plan.batch.actions.emplace_back();
  action.action_digest =
      OfProject(change.job().job.project, ActionDigest(*change.job().spec));
  action.tool_version = request.build_version();
  action.job_id = change.job().job.job_id;
  action.create_time = plan.now;
}

bool Scheduler::WantsAgain(const v1::SynchronizeRequest& request,
                           const TaskRecord& task, size_t granted) const {
  if (request.kind() == v1::SynchronizeRequest::WORKER) {
    return static_cast<int>(granted) <
           std::min(request.free_slots(), kMaxGrantsACall);
  }
  const v1::DeviceStatus* status = FindStatus(request, task.device);
  return status != nullptr && status->ready() && !status->disabled();
}

// A lease the caller has never listed is one whose grant got lost on the way:
// it is told again, or taken back when there is no room for it now. One that it
// did list before was dropped: the attempt has failed.
std::vector<TaskRef> Scheduler::SettleUnlisted(
    const v1::SynchronizeRequest& request, Plan& plan) {
  std::vector<TaskRef> granted;
  for (const TaskRef& ref : index_.LeasedBy(request.participant_id())) {
    const LiveTask& live = jobs_.at(ref.job_id).tasks[ref.index];
    if (Lists(request, live.record)) continue;
    JobChange& change = *Edit(plan, ref.job_id);
    if (change.task(ref.index).record.state != v1::LEASED) continue;
    if (live.acknowledged) {
      if (live.record.kind == v1::BENCHMARK) {
        fleet_.NoteOutcome(live.record.device, false,
                           "its agent lost hold of a task", plan.now,
                           plan.batch);
      }
      change.FailAttempt(
          ref.index,
          MakeFailure(
              v1::Failure::INTERNAL, "UNAVAILABLE",
              absl::StrCat(request.name(), " no longer works on the task")),
          "lost");
    } else if (!draining_ && WantsAgain(request, live.record, granted.size())) {
      change.Renew(ref.index, /*acknowledged=*/false);
      granted.push_back(ref);
    } else {
      change.HandBack(ref.index, "the lease never reached its holder");
    }
  }
  return granted;
}

bool Scheduler::TryGrant(const TaskRef& ref, const Holder& holder, Plan& plan) {
  if (!IsLeasable(jobs_.at(ref.job_id).tasks[ref.index].record, plan.now)) {
    return false;
  }
  JobChange& change = *Edit(plan, ref.job_id);
  // What this very call reported may have changed the job.
  if (!IsLeasable(change.task(ref.index).record, plan.now)) return false;
  change.Grant(ref.index, holder);
  return true;
}

void Scheduler::GrantToWorker(const v1::SynchronizeRequest& request, Plan& plan,
                              std::vector<TaskRef>& granted) {
  const size_t wanted =
      static_cast<size_t>(std::clamp(request.free_slots(), 0, kMaxGrantsACall));
  const Holder holder{request.participant_id(), request.name(), ""};
  for (const TaskRef& ref : index_.ReadyToOptimize()) {
    if (granted.size() >= wanted) return;
    if (TryGrant(ref, holder, plan)) granted.push_back(ref);
  }
}

void Scheduler::GrantToAgent(const v1::SynchronizeRequest& request, Plan& plan,
                             std::vector<TaskRef>& granted) {
  for (const v1::DeviceStatus& status : request.devices()) {
    const std::string& device = status.info().name();
    if (!status.ready() || status.disabled() ||
        !fleet_.MayWork(device, plan.now) ||
        !plan.served.insert(device).second ||
        index_.LeasedOnDevice(device) != nullptr) {
      continue;
    }
    const Holder holder{request.participant_id(), request.name(), device};
    index_.ForEachReady(WaysToAskFor(status.info()), [&](const TaskRef& ref) {
      if (!MaySuit(ref, device, plan.now) || !TryGrant(ref, holder, plan)) {
        return true;
      }
      granted.push_back(ref);
      return false;
    });
  }
}

// A device may be kept for other jobs; and one that the job measures anyway
// does not count as another of a pool.
bool Scheduler::MaySuit(const TaskRef& ref, const std::string& device,
                        absl::Time now) const {
  const LiveJob& job = jobs_.at(ref.job_id);
  if (!fleet_.MayHave(device, job.spec->tags(), now)) return false;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    if (i != ref.index && job.tasks[i].record.device == device) return false;
  }
  return true;
}

absl::StatusOr<v1::LeasedTask> Scheduler::Describe(const TaskRef& ref,
                                                   absl::Time now) {
  const LiveJob& job = jobs_.at(ref.job_id);
  const TaskRecord& task = job.tasks[ref.index].record;
  v1::LeasedTask lease;
  lease.set_task_id(task.task_id);
  lease.set_attempt(task.attempt);
  lease.set_job_id(ref.job_id);
  *lease.mutable_lease_deadline() = ToTimestamp(task.lease_deadline);
  *lease.mutable_lease_duration() = ToProtoDuration(task.lease_deadline - now);
  const JobLimits limits = LimitsOf(*job.spec, options_);
  *lease.mutable_run_limit() =
      ToProtoDuration(task.attempt_start_time + limits.run - now);
  if (task.kind == v1::OPTIMIZE) {
    v1::OptimizeTask& work = *lease.mutable_optimize();
    *work.mutable_model() = job.spec->model();
    *work.mutable_recipe() = job.spec->recipe();
    *work.mutable_inputs() = job.spec->inputs();
    *work.mutable_outputs() = job.spec->outputs();
    if (job.spec->has_calibration()) {
      *work.mutable_calibration() = job.spec->calibration();
    }
    if (job.spec->has_labels()) *work.mutable_labels() = job.spec->labels();
    if (job.spec->has_model_origin()) {
      *work.mutable_model_origin() = job.spec->model_origin();
    }
    return lease;
  }
  OPTFARM_ASSIGN_OR_RETURN(const v1::Report report,
                           store_.GetReport(ref.job_id));
  v1::BenchmarkTask& work = *lease.mutable_benchmark();
  work.set_device(task.device);
  *work.mutable_spec() = job.spec->benchmark();
  work.mutable_spec()->clear_devices();
  for (const bool optimized : {false, true}) {
    v1::BenchmarkVariant& variant = *work.add_variants();
    variant.set_name(optimized ? job.spec->recipe().name() : "float");
    *variant.mutable_model() = job.spec->model();
    if (optimized) {
      variant.mutable_model()->set_name("optimized.pb");
      *variant.mutable_model()->mutable_digest() = report.optimized_model();
    }
    for (const v1::Artifact& artifact : report.artifacts()) {
      if (artifact.name() == (optimized ? kOptimizedCheck : kFloatCheck)) {
        *variant.mutable_check_sample() = artifact.digest();
      }
    }
    *variant.mutable_inputs() = report.inputs();
    *variant.mutable_outputs() = report.outputs();
  }
  return lease;
}

}  // namespace optfarm::server
