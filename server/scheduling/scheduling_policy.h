// What may happen to a task or a job, and when: pure functions of a record,
// the time and the options. Nothing here reads a clock, a lock or a database.
// Start here to understand scheduling; job_change.h applies these rules to one
// job, scheduler.h to all of them.

#ifndef OPTFARM_SERVER_SCHEDULING_SCHEDULING_POLICY_H_
#define OPTFARM_SERVER_SCHEDULING_SCHEDULING_POLICY_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "optfarm/v1/jobs.pb.h"
#include "server/scheduling/away_time.h"
#include "storage/records.h"

namespace optfarm::server {

struct SchedulingOptions {
  // How long a lease lasts without being renewed.
  absl::Duration lease = absl::Seconds(30);
  // First wait after an internal error; doubles with each, up to retry_max.
  absl::Duration retry_base = absl::Seconds(2);
  absl::Duration retry_max = absl::Minutes(5);
  // Deadlines of jobs that state none.
  absl::Duration queue_limit = absl::Hours(24);
  absl::Duration run_limit = absl::Hours(1);
  // How long an attempt may fetch files, lay them out on its device and wait
  // for that to be ready. Besides it a job's own cool-down counts.
  absl::Duration provision_limit = absl::Minutes(45);
  absl::Duration job_limit = absl::Hours(48);
  // Attempts a task, where the job states none.
  int max_attempts = 3;
  // A device whose agent has been silent for longer is OFFLINE.
  absl::Duration offline_after = absl::Seconds(60);
  // A device that has not reported for longer is missed.
  absl::Duration alert_after = absl::Minutes(15);
  // Longest time a Synchronize call is held.
  absl::Duration max_long_poll = absl::Seconds(60);
  // When callers that do not long-poll should call again.
  absl::Duration idle_interval = absl::Seconds(5);
  // Jobs that may be QUEUED or RUNNING at once.
  int max_live_jobs = 10000;
};

// A job's deadlines with defaults filled in.
struct JobLimits {
  absl::Duration queue;
  absl::Duration run;
  absl::Duration job;
  absl::Duration provision = absl::InfiniteDuration();
};
JobLimits LimitsOf(const v1::JobSpec& spec, const SchedulingOptions& options);

// The state machines of jobs.proto. A state never follows itself.
bool MayFollow(v1::TaskState from, v1::TaskState to);
bool MayFollow(v1::JobState from, v1::JobState to);
bool HasEnded(v1::TaskState state);
bool HasEnded(v1::JobState state);

// Wait before the next attempt after `failed_attempts` failures (>= 1).
absl::Duration RetryDelay(int failed_attempts,
                          const SchedulingOptions& options);

// Which process takes a lease, and for which device: empty for workers.
struct Holder {
  std::string participant_id;
  std::string name;
  std::string device = "";
};

// Names of a job's tasks. `asked` is what the job asks to be measured on.
std::string OptimizeTaskId(absl::string_view job_id);
std::string BenchmarkTaskId(absl::string_view job_id, absl::string_view asked);
// The inverse.
absl::string_view JobIdOfTask(absl::string_view task_id);
// Empty for an optimize task.
absl::string_view AskedDeviceOfTask(absl::string_view task_id);

// The task after one event. REQUIRES: the state machine allows it. A task that
// asked for any device of a pool is bound to one while it is leased and after.
storage::TaskRecord Unblocked(storage::TaskRecord task, absl::Time now);
storage::TaskRecord Leased(storage::TaskRecord task, const Holder& holder,
                           absl::Time now, const SchedulingOptions& options);
storage::TaskRecord Done(storage::TaskRecord task, absl::Time now);
storage::TaskRecord Cancelled(storage::TaskRecord task, absl::Time now);
storage::TaskRecord HandedBack(storage::TaskRecord task, absl::Time now);
// The current attempt failed: ended for a user error or when attempts are used
// up, otherwise READY again after a wait.
storage::TaskRecord AttemptFailed(storage::TaskRecord task,
                                  const v1::Failure& failure, absl::Time now,
                                  const SchedulingOptions& options);
// Failed for good, whatever attempts are left.
storage::TaskRecord Failed(storage::TaskRecord task, const v1::Failure& failure,
                           absl::Time now);

enum class TaskDeadline { kNone, kQueue, kLease, kProvision, kRun };

// The deadline of the task's state that has passed at `now`, if any. The run
// deadline is looked at before that of provision, and that before the lease's.
// An attempt that reports progress is past its provision, and one whose work is
// done (progress 1) past its run: it hands its files over, for which it may
// have to wait until the server has room.
TaskDeadline PassedDeadline(const storage::TaskRecord& task,
                            const JobLimits& limits, const AwayTime& away,
                            absl::Time now);

// When something about the task is due next: a deadline passes, or a wait that
// is not over at `now` ends. absl::InfiniteFuture() when nothing is.
absl::Time NextDue(const storage::TaskRecord& task, const JobLimits& limits,
                   const AwayTime& away, absl::Time now);

// May be leased now: READY and not waiting after a failure.
bool IsLeasable(const storage::TaskRecord& task, absl::Time now);

v1::Failure MakeFailure(v1::Failure::Kind kind, absl::string_view code,
                        absl::string_view message);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_SCHEDULING_POLICY_H_
