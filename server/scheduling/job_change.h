// One live job being changed: applies the rules of scheduling_policy.h to a
// copy of the job, keeps its tasks and its own state in step, and gathers the
// writes and events that make the change durable. Still no clock, no lock, no
// database: the scheduler commits the batch and only then takes the copy over.

#ifndef OPTFARM_SERVER_SCHEDULING_JOB_CHANGE_H_
#define OPTFARM_SERVER_SCHEDULING_JOB_CHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/scheduling_policy.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

// A task of a live job, with what is known of it in memory only.
struct LiveTask {
  storage::TaskRecord record;
  // The holder has listed the lease: it got the grant.
  bool acknowledged = false;
  // UNITS: bytes of this attempt's log received, and of the task's log kept.
  int64_t log_received = 0;
  int64_t log_kept = 0;
};

struct LiveJob {
  // Without spec; that is below, shared between copies.
  storage::JobRecord job;
  std::shared_ptr<const v1::JobSpec> spec;
  std::vector<LiveTask> tasks;
};

// What a worker or agent sent about progress, besides a completion.
struct TaskNews {
  double progress = 0;
  absl::string_view progress_message;
  absl::string_view log_chunk;
  int64_t log_offset = 0;
};

// THREADS: one thread at a time.
class JobChange {
 public:
  JobChange(LiveJob job, absl::Time now, const SchedulingOptions& options);

  const LiveJob& job() const { return job_; }
  const LiveTask& task(size_t index) const { return job_.tasks[index]; }

  // Each of the following is one event in a task's life. REQUIRES: the state
  // machine allows it (LEASED for those about an attempt).
  void Grant(size_t index, const Holder& holder);
  // The lease runs anew, because its holder lists it (which acknowledges the
  // grant) or is told of it again. In memory only.
  void Renew(size_t index, bool acknowledged);
  void TakeNews(size_t index, const TaskNews& news);
  // `outcome`: "failed" or "lost".
  void FailAttempt(size_t index, const v1::Failure& failure,
                   absl::string_view outcome);
  void HandBack(size_t index, absl::string_view reason);
  void CompleteOptimize(size_t index, const v1::Report& report);
  void CompleteBenchmark(size_t index, const v1::BenchmarkResult& result);
  // Keeps files of the current attempt; call before its end.
  void NoteMade(const v1::Digest& digest);
  void KeepArtifacts(
      size_t index,
      const google::protobuf::RepeatedPtrField<v1::Artifact>& artifacts);
  // The current attempt's completion is being taken: a repetition is answered
  // with "accepted", not with "stale".
  void MarkAccepted(size_t index);

  // Ends the job as CANCELLED. REQUIRES: it is live.
  void Cancel(absl::string_view reason);
  // Applies every deadline that has passed, but for the time away.
  void Expire(const AwayTime& away);
  // The job was just made: says so, and settles what is already decided (all
  // of it may have come from the cache).
  void Begin();

  // Whether anything has to be written.
  bool durable() const;
  // Adds the writes to `batch`. Call once, last.
  void AppendTo(storage::WriteBatch& batch);
  // The job as changed. Call last.
  LiveJob Release() && { return std::move(job_); }

 private:
  // What tells whether a record has to be written.
  struct TaskBefore {
    v1::TaskState state;
    int attempt;
    int accepted_attempt;
    int failed_attempts;
    double progress;
    std::string progress_message;
    size_t artifacts;

    explicit TaskBefore(const LiveTask& task);
    bool operator==(const TaskBefore& other) const = default;
  };

  storage::TaskRecord& record(size_t index) { return job_.tasks[index].record; }
  v1::JobEvent& AddEvent(const storage::TaskRecord* task);
  void AddTaskEvent(const storage::TaskRecord& task, absl::string_view message);
  void AddAttempt(const storage::TaskRecord& task, absl::string_view outcome,
                  absl::string_view message);
  void ExpireTask(size_t index, TaskDeadline deadline);
  void CancelRest();
  void EndJob(v1::JobState state, const std::optional<v1::Failure>& failure);
  // Ends the job when its tasks decide it.
  void Settle();

  LiveJob job_;
  // As it was.
  const v1::JobState state_before_;
  const size_t gates_before_;
  const std::vector<TaskBefore> tasks_before_;
  const absl::Time now_;
  const SchedulingOptions& options_;
  storage::WriteBatch batch_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_JOB_CHANGE_H_
