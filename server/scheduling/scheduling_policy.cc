#include "server/scheduling/scheduling_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rpc/proto_time.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::TaskRecord;

template <typename State>
struct Move {
  State from;
  State to;
};

constexpr Move<v1::TaskState> kTaskMoves[] = {
    {v1::BLOCKED, v1::READY},          {v1::READY, v1::LEASED},
    {v1::LEASED, v1::READY},           {v1::LEASED, v1::TASK_DONE},
    {v1::READY, v1::TASK_FAILED},      {v1::LEASED, v1::TASK_FAILED},
    {v1::BLOCKED, v1::TASK_CANCELLED}, {v1::READY, v1::TASK_CANCELLED},
    {v1::LEASED, v1::TASK_CANCELLED},
};

constexpr Move<v1::JobState> kJobMoves[] = {
    {v1::QUEUED, v1::RUNNING},    {v1::QUEUED, v1::SUCCEEDED},
    {v1::QUEUED, v1::FAILED},     {v1::QUEUED, v1::CANCELLED},
    {v1::RUNNING, v1::SUCCEEDED}, {v1::RUNNING, v1::FAILED},
    {v1::RUNNING, v1::CANCELLED},
};

template <typename State, size_t kSize>
bool Contains(const Move<State> (&moves)[kSize], State from, State to) {
  return std::any_of(std::begin(moves), std::end(moves),
                     [&](const Move<State>& move) {
                       return move.from == from && move.to == to;
                     });
}

void Enter(TaskRecord& task, v1::TaskState state) {
  OPTFARM_CHECK(MayFollow(task.state, state));
  task.state = state;
}

void Leave(TaskRecord& task, v1::TaskState state, absl::Time now) {
  Enter(task, state);
  task.end_time = now;
  task.lease_deadline = absl::InfinitePast();
  task.not_before = absl::InfinitePast();
}

TaskRecord ReadyAgain(TaskRecord task, absl::Time now, absl::Duration wait) {
  Enter(task, v1::READY);
  task.ready_time = now;
  task.not_before =
      wait > absl::ZeroDuration() ? now + wait : absl::InfinitePast();
  task.lease_deadline = absl::InfinitePast();
  task.progress = 0;
  task.progress_message.clear();
  task.device = std::string(AskedDeviceOfTask(task.task_id));
  return task;
}

absl::Duration DurationOr(bool given, const google::protobuf::Duration& value,
                          absl::Duration fallback) {
  return given ? rpc::FromProtoDuration(value) : fallback;
}

absl::Time QueueEnd(const TaskRecord& task, const JobLimits& limits,
                    const AwayTime& away) {
  return task.ready_time + limits.queue + away.Since(task.ready_time);
}

absl::Time ProvisionEnd(const TaskRecord& task, const JobLimits& limits,
                        const AwayTime& away) {
  if (task.progress > 0) return absl::InfiniteFuture();
  return task.attempt_start_time + limits.provision +
         away.Since(task.attempt_start_time);
}

absl::Time RunEnd(const TaskRecord& task, const JobLimits& limits,
                  const AwayTime& away) {
  if (task.progress >= 1) return absl::InfiniteFuture();
  return task.attempt_start_time + limits.run +
         away.Since(task.attempt_start_time);
}

constexpr char kOptimize[] = "/optimize";
constexpr char kBenchmark[] = "/benchmark/";

}  // namespace

std::string OptimizeTaskId(absl::string_view job_id) {
  return absl::StrCat(job_id, kOptimize);
}

std::string BenchmarkTaskId(absl::string_view job_id, absl::string_view asked) {
  return absl::StrCat(job_id, kBenchmark, asked);
}

absl::string_view JobIdOfTask(absl::string_view task_id) {
  return task_id.substr(0, task_id.find('/'));
}

absl::string_view AskedDeviceOfTask(absl::string_view task_id) {
  const size_t at = task_id.find(kBenchmark);
  return at == absl::string_view::npos
             ? absl::string_view()
             : task_id.substr(at + sizeof(kBenchmark) - 1);
}

JobLimits LimitsOf(const v1::JobSpec& spec, const SchedulingOptions& options) {
  const v1::Deadlines& deadlines = spec.deadlines();
  return JobLimits{
      DurationOr(deadlines.has_queue(), deadlines.queue(), options.queue_limit),
      DurationOr(deadlines.has_run(), deadlines.run(), options.run_limit),
      DurationOr(deadlines.has_job(), deadlines.job(), options.job_limit),
      options.provision_limit +
          rpc::FromProtoDuration(spec.benchmark().cool_down())};
}

bool MayFollow(v1::TaskState from, v1::TaskState to) {
  return Contains(kTaskMoves, from, to);
}

bool MayFollow(v1::JobState from, v1::JobState to) {
  return Contains(kJobMoves, from, to);
}

bool HasEnded(v1::TaskState state) {
  return state == v1::TASK_DONE || state == v1::TASK_FAILED ||
         state == v1::TASK_CANCELLED;
}

bool HasEnded(v1::JobState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED ||
         state == v1::CANCELLED;
}

absl::Duration RetryDelay(int failed_attempts,
                          const SchedulingOptions& options) {
  absl::Duration wait = options.retry_base;
  for (int i = 1; i < failed_attempts && wait < options.retry_max; ++i) {
    wait *= 2;
  }
  return std::min(wait, options.retry_max);
}

TaskRecord Unblocked(TaskRecord task, absl::Time now) {
  Enter(task, v1::READY);
  task.ready_time = now;
  return task;
}

TaskRecord Leased(TaskRecord task, const Holder& holder, absl::Time now,
                  const SchedulingOptions& options) {
  Enter(task, v1::LEASED);
  ++task.attempt;
  task.holder = holder.name;
  task.participant_id = holder.participant_id;
  task.device = holder.device;
  task.attempt_start_time = now;
  task.lease_deadline = now + options.lease;
  task.not_before = absl::InfinitePast();
  if (task.start_time == absl::InfinitePast()) task.start_time = now;
  return task;
}

TaskRecord Done(TaskRecord task, absl::Time now) {
  Leave(task, v1::TASK_DONE, now);
  task.progress = 1;
  task.failure.reset();
  return task;
}

TaskRecord Cancelled(TaskRecord task, absl::Time now) {
  Leave(task, v1::TASK_CANCELLED, now);
  return task;
}

TaskRecord HandedBack(TaskRecord task, absl::Time now) {
  return ReadyAgain(std::move(task), now, absl::ZeroDuration());
}

TaskRecord AttemptFailed(TaskRecord task, const v1::Failure& failure,
                         absl::Time now, const SchedulingOptions& options) {
  ++task.failed_attempts;
  task.failure = failure;
  if (failure.kind() == v1::Failure::USER ||
      task.failed_attempts >= task.max_attempts) {
    Leave(task, v1::TASK_FAILED, now);
    return task;
  }
  const absl::Duration wait = RetryDelay(task.failed_attempts, options);
  return ReadyAgain(std::move(task), now, wait);
}

TaskRecord Failed(TaskRecord task, const v1::Failure& failure, absl::Time now) {
  task.failure = failure;
  Leave(task, v1::TASK_FAILED, now);
  return task;
}

TaskDeadline PassedDeadline(const TaskRecord& task, const JobLimits& limits,
                            const AwayTime& away, absl::Time now) {
  if (task.state == v1::READY && now >= QueueEnd(task, limits, away)) {
    return TaskDeadline::kQueue;
  }
  if (task.state != v1::LEASED) return TaskDeadline::kNone;
  if (now >= RunEnd(task, limits, away)) return TaskDeadline::kRun;
  if (now >= ProvisionEnd(task, limits, away)) return TaskDeadline::kProvision;
  if (now >= task.lease_deadline) return TaskDeadline::kLease;
  return TaskDeadline::kNone;
}

absl::Time NextDue(const TaskRecord& task, const JobLimits& limits,
                   const AwayTime& away, absl::Time now) {
  switch (task.state) {
    case v1::READY: {
      const absl::Time queue = QueueEnd(task, limits, away);
      return task.not_before <= now ? queue : std::min(queue, task.not_before);
    }
    case v1::LEASED:
      return std::min({task.lease_deadline, RunEnd(task, limits, away),
                       ProvisionEnd(task, limits, away)});
    default:
      return absl::InfiniteFuture();
  }
}

bool IsLeasable(const TaskRecord& task, absl::Time now) {
  return task.state == v1::READY && task.not_before <= now;
}

v1::Failure MakeFailure(v1::Failure::Kind kind, absl::string_view code,
                        absl::string_view message) {
  v1::Failure failure;
  failure.set_kind(kind);
  failure.set_code(std::string(code));
  failure.set_message(std::string(message));
  return failure;
}

}  // namespace optfarm::server
