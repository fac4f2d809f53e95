// The pull call of workers and agents: what becomes of what they hold, and what
// they get.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/conventions/names.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::TaskRecord;

// Calls in one commit: what is written for them fits into memory, and who comes
// next does not wait for long.
constexpr size_t kMaxTogether = 128;
constexpr size_t kMaxKnownCallers = 20000;

void SetLease(v1::TaskVerdict& verdict, absl::Time now,
              absl::Duration duration) {
  *verdict.mutable_lease_deadline() = rpc::ToTimestamp(now + duration);
  *verdict.mutable_lease_remaining() = rpc::ToProtoDuration(duration);
}

}  // namespace

struct Scheduler::Waiting {
  NumberedCall call;
  absl::StatusOr<SynchronizeResult> result;
  std::vector<TaskRef> granted;
};

int64_t Scheduler::BeginCall(const std::string& participant_id) {
  absl::MutexLock lock(&calls_mutex_);
  // Forgetting the numbers is harmless: they only order calls that overlap.
  if (newest_call_.size() > kMaxKnownCallers) newest_call_.clear();
  return newest_call_[participant_id] = ++last_call_;
}

bool Scheduler::IsReplaced(const NumberedCall& call) {
  absl::MutexLock lock(&calls_mutex_);
  const auto newest = newest_call_.find(call.request->participant_id());
  return newest != newest_call_.end() && newest->second > call.number;
}

absl::StatusOr<SynchronizeResult> Scheduler::Synchronize(
    const v1::SynchronizeRequest& request, int64_t call, absl::Time now) {
  return std::move(Synchronize({{NumberedCall{&request, call}}}, now)[0]);
}

// Making a change durable takes as long for one call as for many.
std::vector<absl::StatusOr<SynchronizeResult>> Scheduler::Synchronize(
    absl::Span<const NumberedCall> calls, absl::Time now) {
  std::vector<Waiting> waiting;
  waiting.reserve(calls.size());
  for (const NumberedCall& call : calls) {
    Waiting& added =
        waiting.emplace_back(Waiting{call, SynchronizeResult(), {}});
    const absl::Status fit = CheckSynchronizeRequest(*call.request);
    if (!fit.ok()) added.result = fit;
  }
  for (size_t next = 0; next < waiting.size();) {
    SynchronizeGroup(NextGroup(waiting, next), now);
  }
  std::vector<absl::StatusOr<SynchronizeResult>> results;
  results.reserve(waiting.size());
  for (Waiting& each : waiting) results.push_back(std::move(each.result));
  return results;
}

// Those who came first and are not refused, no participant twice.
std::vector<Scheduler::Waiting*> Scheduler::NextGroup(
    std::vector<Waiting>& waiting, size_t& next) {
  std::vector<Waiting*> group;
  absl::flat_hash_set<std::string> participants;
  for (; next < waiting.size() && group.size() < kMaxTogether; ++next) {
    Waiting& each = waiting[next];
    if (!each.result.ok()) continue;
    if (!participants.insert(each.call.request->participant_id()).second) break;
    group.push_back(&each);
  }
  return group;
}

void Scheduler::SynchronizeGroup(const std::vector<Waiting*>& group,
                                 absl::Time now) {
  std::vector<std::unique_ptr<Plan>> plans;
  plans.push_back(std::make_unique<Plan>(now));
  {
    absl::MutexLock lock(&mutex_);
    const bool kept = SynchronizeTogether(group, *plans.back()).ok();
    if (!kept && group.size() > 1) {
      // What is wrong with one of them is not the others' fault.
      for (Waiting* waiting : group) {
        plans.push_back(std::make_unique<Plan>(now));
        (void)SynchronizeTogether({waiting}, *plans.back());
      }
    }
  }
  for (const std::unique_ptr<Plan>& plan : plans) Tell(*plan);
}

// All that is reported is taken in before anything is given, so that nobody is
// given what another one's report ends.
absl::Status Scheduler::SynchronizeTogether(const std::vector<Waiting*>& group,
                                            Plan& plan) {
  std::vector<Waiting*> current;
  for (Waiting* waiting : group) {
    waiting->granted.clear();
    if (IsReplaced(waiting->call)) {
      waiting->result =
          absl::AbortedError("a newer call of the same participant is open");
      continue;
    }
    waiting->result = SynchronizeResult();
    current.push_back(waiting);
  }
  for (Waiting* waiting : current) TakeIn(*waiting, plan);
  index_.EndWaits(plan.now);
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
  const v1::SynchronizeRequest& request = *waiting.call.request;
  fleet_.TakeIn(request, plan.now, plan.batch, plan.fleet);
  for (const v1::HeldTask& held : request.held()) {
    *waiting.result->response.add_verdicts() = Judge(request, held, plan);
  }
  waiting.granted = SettleUnlisted(request, plan);
}

void Scheduler::GrantTo(Waiting& waiting, Plan& plan) {
  if (draining_) return;
  const v1::SynchronizeRequest& request = *waiting.call.request;
  if (request.kind() == v1::SynchronizeRequest::WORKER) {
    GrantToWorker(request, plan, waiting.granted);
  } else {
    GrantToAgent(request, plan, waiting.granted);
  }
}

std::vector<bool> Scheduler::MayHaveNews(
    absl::Span<const v1::SynchronizeRequest* const> requests, absl::Time now) {
  std::vector<bool> news;
  absl::MutexLock lock(&mutex_);
  index_.EndWaits(now);
  for (const v1::SynchronizeRequest* request : requests) {
    fleet_.NoteStillThere(*request, now);
    news.push_back(MayHaveNews(*request, now));
  }
  return news;
}

Scheduler::Openings Scheduler::OpeningsOf(absl::Span<const std::string> job_ids,
                                          absl::Time now) {
  Openings openings;
  absl::MutexLock lock(&mutex_);
  for (const std::string& job_id : job_ids) {
    const auto job = jobs_.find(job_id);
    if (job == jobs_.end()) continue;
    for (const LiveTask& live : job->second.tasks) {
      const TaskRecord& task = live.record;
      if (task.state == v1::LEASED) {
        openings.holders.push_back(task.participant_id);
      } else if (IsLeasable(task, now)) {
        ++(task.kind == v1::OPTIMIZE ? openings.to_optimize
                                     : openings.to_measure[task.device]);
      }
    }
  }
  return openings;
}

bool Scheduler::MayHaveNews(const v1::SynchronizeRequest& request,
                            absl::Time now) {
  if (draining_) return true;
  for (const v1::HeldTask& held : request.held()) {
    const auto job = jobs_.find(std::string(JobIdOfTask(held.task_id())));
    if (job == jobs_.end()) return true;
    const bool goes_on =
        absl::c_any_of(job->second.tasks, [&](const LiveTask& task) {
          return task.record.task_id == held.task_id() &&
                 task.record.attempt == held.attempt() &&
                 task.record.state == v1::LEASED;
        });
    if (!goes_on) return true;
  }
  const size_t leased = index_.LeasedBy(request.participant_id()).size();
  if (leased != static_cast<size_t>(request.held_size())) return true;
  if (request.kind() == v1::SynchronizeRequest::WORKER) {
    return request.free_slots() > 0 && MayHaveWork(request, now);
  }
  return absl::c_any_of(request.devices(),
                        [&](const v1::DeviceStatus& device)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                              return MayHaveWork(device, now);
                            });
}

absl::StatusOr<SynchronizeResult> Scheduler::Answer(Waiting& waiting,
                                                    absl::Time now) {
  const v1::SynchronizeRequest& request = *waiting.call.request;
  SynchronizeResult result = *std::move(waiting.result);
  v1::SynchronizeResponse& response = result.response;
  bool news = draining_;
  for (const v1::TaskVerdict& verdict : response.verdicts()) {
    news |= verdict.verdict() != v1::TaskVerdict::CONTINUE;
  }
  for (const TaskRef& ref : waiting.granted) {
    // Told again, and then ended by what another one reported.
    if (!jobs_.contains(ref.job_id)) continue;
    OPTFARM_ASSIGN_OR_RETURN(*response.add_new_tasks(),
                             Describe(ref, request, now));
  }
  const bool granted = !response.new_tasks().empty();
  const bool holds = !request.held().empty() || granted;
  const absl::Duration wanted =
      request.has_long_poll() ? rpc::FromProtoDuration(request.long_poll())
                              : absl::ZeroDuration();
  // A caller that holds leases must be back in time to renew them.
  const absl::Duration longest =
      holds ? options_.lease / 3 : options_.max_long_poll;
  result.hold = news || granted
                    ? absl::ZeroDuration()
                    : std::clamp(wanted, absl::ZeroDuration(), longest);
  response.set_drain(draining_);
  response.set_server_version(server_version_);
  *response.mutable_long_poll() = rpc::ToProtoDuration(options_.max_long_poll);
  const bool polls = wanted > absl::ZeroDuration() && !draining_;
  *response.mutable_call_again_after() = rpc::ToProtoDuration(
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

}  // namespace optfarm::server
