// The scheduler: all live jobs, who holds what, and the one place where they
// change. Every method decides on a copy, makes the decision durable in one
// batch, and only then takes it over; when the store refuses, nothing happened.
//
// scheduling_policy.h has the rules, job_change.h applies them to one job.

#ifndef OPTFARM_SERVER_SCHEDULING_SCHEDULER_H_
#define OPTFARM_SERVER_SCHEDULING_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/device_states.h"
#include "server/scheduling/device_view.h"
#include "server/scheduling/due_times.h"
#include "server/scheduling/fleet.h"
#include "server/scheduling/job_change.h"
#include "server/scheduling/scheduler_news.h"
#include "server/scheduling/scheduling_policy.h"
#include "server/scheduling/task_index.h"
#include "storage/blob_store.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

struct SchedulerPlan;

// A job that passed the checks that need no lock.
struct Submission {
  std::string client_request_id;
  // SHA-256 of the spec as sent.
  std::string spec_digest;
  // From CheckJobSpec.
  v1::JobSpec spec;
  // What makes the job's outcome; see ActionDigest and OfProject.
  std::string action_digest;
  std::string project = storage::kDefaultProject;
  // Of the project's jobs that may be live at once; 0: any number.
  int max_live_jobs = 0;
};

struct SubmitResult {
  std::string job_id;
  // An earlier submit made it.
  bool existed = false;
};

// A call of a worker or an agent. OWNERSHIP: the request outlives it.
struct NumberedCall {
  const v1::SynchronizeRequest* request = nullptr;
  // From Scheduler::BeginCall.
  int64_t number = 0;
};

struct SynchronizeResult {
  v1::SynchronizeResponse response;
  // How long the answer may be held back for something better; 0: send it now.
  absl::Duration hold;
};

// Told, after a change is durable and without locks held, what is new. May be
// called from any thread.
using ChangeListener = std::function<void(const SchedulerNews& news)>;

// Told what became durable and how long that took. As ChangeListener, but with
// the scheduler's lock held: it must not call back.
using CommitObserver =
    std::function<void(const storage::WriteBatch& batch, absl::Duration time)>;

// How the queue is.
struct QueueNumbers {
  struct Kind {
    int ready = 0;
    int leased = 0;
    // How long the oldest READY task has waited.
    absl::Duration oldest = absl::ZeroDuration();
  };
  int queued_jobs = 0;
  int running_jobs = 0;
  Kind optimize;
  Kind benchmark;
  // How many tasks were looked at for those who asked for work since the start.
  int64_t task_looks = 0;
  // How often a device was looked at for a change of its state.
  int64_t device_looks = 0;
};

// THREADS: all methods are safe.
class Scheduler {
 public:
  // OWNERSHIP: the stores outlive the scheduler.
  Scheduler(storage::MetadataStore& store, storage::BlobStore& blobs,
            SchedulingOptions options, std::string server_version);

  // REQUIRES: called before any other method.
  void SetListener(ChangeListener listener) { listener_ = std::move(listener); }

  // REQUIRES: as SetListener.
  void SetObserver(CommitObserver observer) { observer_ = std::move(observer); }

  // What new jobs are called; random names where nothing is set.
  // REQUIRES: as SetListener. No name comes twice.
  void SetJobIds(std::function<std::string()> next) {
    next_job_id_ = std::move(next);
  }

  // Takes over what the store holds. Leases are given a full term, so that
  // their holders can come back.
  // REQUIRES: called once, before anything below.
  absl::Status Load(absl::Time now, AwayTime away = {});

  // ENSURES: on OK the job is durable.
  // ERRORS: NotFound for unknown devices; AlreadyExists for a known request id
  // with another spec; ResourceExhausted when too many jobs are live or the
  // disk is full.
  absl::StatusOr<SubmitResult> Submit(const Submission& submission,
                                      absl::Time now);

  // The job that an earlier submit with this request id made, if any.
  // ERRORS: AlreadyExists when it had another spec.
  absl::StatusOr<std::optional<SubmitResult>> FindSubmitted(
      const std::string& client_request_id, const std::string& spec_digest);

  // ERRORS: NotFound.
  absl::Status Cancel(const std::string& job_id, absl::string_view reason,
                      absl::Time now);

  // Says that a call of this participant begins; its number goes into
  // Synchronize. A call with an older number than the newest is refused.
  int64_t BeginCall(const std::string& participant_id);

  // Serves several calls, with as few commits as can be; the answers are in
  // the order of the calls.
  // ERRORS: InvalidArgument; Aborted for a call that a newer one replaced.
  std::vector<absl::StatusOr<SynchronizeResult>> Synchronize(
      absl::Span<const NumberedCall> calls, absl::Time now);
  absl::StatusOr<SynchronizeResult> Synchronize(
      const v1::SynchronizeRequest& request, int64_t call, absl::Time now);

  // Whether Synchronize has something to say to callers that had nothing to be
  // told before, and wait still. Notes that they are there.
  std::vector<bool> MayHaveNews(
      absl::Span<const v1::SynchronizeRequest* const> requests, absl::Time now);

  // What jobs offer now, and to whom they may have something to say.
  struct Openings {
    // READY optimize tasks, and benchmark tasks by the way in which they ask
    // for a device (see device_choice.h).
    size_t to_optimize = 0;
    std::map<std::string, size_t> to_measure;
    // Participants that hold tasks of the jobs.
    std::vector<std::string> holders;
  };
  Openings OpeningsOf(absl::Span<const std::string> job_ids, absl::Time now);

  // How often it wants to know of those who wait that they are there, so that
  // their devices are not taken to be offline.
  absl::Duration presence_interval() const {
    return options_.offline_after / 3;
  }

  // Applies every deadline that has passed and returns when something is due
  // next, at most a minute later.
  absl::Time Tick(absl::Time now);

  // The server was stopped from `from` on, or the clock jumped from there:
  // gives every lease a full term, because its holder had no chance to renew
  // it, and lets no other deadline count the time. Where the clock was set
  // back, times that are now to come become now.
  void ForgivePause(absl::Time from, absl::Time now);

  // What no deadline counts, to be kept for Load.
  AwayTime Away(absl::Time now);

  // Says of each task in `job` that is ready why nobody has it.
  void ExplainWaits(storage::StoredJob& job, absl::Time now);

  // From now on no work is handed out; callers are told to drain.
  void Drain();

  // Replaces the lease deadlines in `job`, as stored, by the current ones.
  void RefreshLeases(storage::StoredJob& job);

  QueueNumbers Numbers(absl::Time now);

  // Workers and agents that have called since.
  std::pair<int, int> CountParticipants(absl::Time since);

  // A worker or an agent, and how many tasks it holds.
  struct KnownParticipant {
    storage::ParticipantRecord record;
    int tasks = 0;
  };
  // Those that have called since: workers first, then by name and id.
  std::vector<KnownParticipant> Participants(absl::Time since);

  // How many jobs of each project wait or run.
  std::map<std::string, int> LiveJobsByProject();

  // The jobs of tasks that these participants hold, what was leased last first.
  std::vector<std::string> JobsLeasedBy(
      absl::Span<const std::string> participant_ids);

  // Devices with their state at `now`, by name; with a project, tasks of others
  // are not named, nor what went wrong with them.
  std::vector<v1::Device> Devices(
      absl::Time now, const std::optional<std::string>& project = {});
  // How many are in each state.
  std::map<v1::Device::State, int> CountDevices(absl::Time now);
  // ERRORS: NotFound with the nearest names.
  absl::StatusOr<v1::Device> FindDevice(
      const std::string& name, absl::Time now,
      const std::optional<std::string>& project = {});
  // The states that a device was in, newest first. With a project, without what
  // is only for those who see all.
  // ERRORS: NotFound with the nearest names; those of the store.
  absl::StatusOr<std::vector<storage::DeviceStateRecord>> DeviceHistory(
      const std::string& name, const storage::PageRequest& page, absl::Time now,
      const std::optional<std::string>& project = {});
  // Takes a device out of service or back into it, durably.
  // ERRORS: NotFound with the nearest names; InvalidArgument; those of the
  // store.
  absl::StatusOr<v1::Device> ChangeDevice(const v1::ChangeDeviceRequest& change,
                                          absl::Time now);
  // Forgets a device that is gone, durably, with the states that it was in, and
  // returns it as it was.
  // ERRORS: NotFound with the nearest names; FailedPrecondition while its agent
  // reports it, or a live job wants it and no other device will do; those of
  // the store.
  absl::StatusOr<v1::Device> DeleteDevice(const std::string& name,
                                          absl::Time now);
  // A recipe that some worker offers. ERRORS: NotFound with the nearest names.
  absl::StatusOr<v1::Recipe> FindRecipe(const std::string& name);

 private:
  // A change to several jobs that is committed as one.
  using Plan = SchedulerPlan;
  // A call of Synchronize that waits for its answer.
  struct Waiting;

  JobChange* Edit(Plan& plan, const std::string& job_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Commit(Plan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the devices that are free now and were not.
  std::vector<std::string> TakeOver(Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Devices that tasks of the job hold.
  std::vector<std::string> DevicesHeldBy(const std::string& job_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReloadAfterConflict(const Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const Plan& plan) ABSL_LOCKS_EXCLUDED(mutex_);
  // ERRORS: FailedPrecondition.
  absl::Status CheckUnused(const storage::DeviceRecord& record, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StateAndReason StateOfDevice(const storage::DeviceRecord& record,
                               absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes the state of a device, of several, of those that time may have
  // changed. Whether it is another one than before.
  bool NoteState(const storage::DeviceRecord& record, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteStates(const std::set<std::string>& devices, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteDueStates(Plan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has time taken to have changed all.
  void NoteAllStatesSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes durable what has been noted. Trouble is logged: it is tried again.
  void KeepStates() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddLiveJob(storage::StoredJob stored, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Into jobs_ and what finds them there, as new or changed; and out again.
  void Keep(LiveJob job, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When something about the job is due next.
  absl::Time DueOf(const LiveJob& job, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgiveLeases(LiveJob& job, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::StatusOr<SubmitResult> Insert(const Submission& submission, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  storage::NewJob MakeJob(const Submission& submission, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerFromCache(const Submission& submission, Plan& plan,
                       storage::NewJob& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(const Submission& submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckDevicesExist(const v1::JobSpec& spec)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckEnginesExist(const v1::JobSpec& spec) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool IsReplaced(const NumberedCall& call) ABSL_LOCKS_EXCLUDED(calls_mutex_);
  static std::vector<Waiting*> NextGroup(std::vector<Waiting>& waiting,
                                         size_t& next);
  void SynchronizeGroup(const std::vector<Waiting*>& group, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether what was reported is durable.
  absl::Status SynchronizeTogether(const std::vector<Waiting*>& group,
                                   Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeIn(Waiting& waiting, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GrantTo(Waiting& waiting, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<SynchronizeResult> Answer(Waiting& waiting, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayHaveNews(const v1::SynchronizeRequest& request, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayTakeWork(const v1::DeviceStatus& status, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayHaveWork(const v1::DeviceStatus& status, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same of a worker.
  bool MayHaveWork(const v1::SynchronizeRequest& request, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyItWaits(const LiveJob& job, size_t index, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::TaskVerdict Judge(const v1::SynchronizeRequest& request,
                        const v1::HeldTask& held, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JudgeEnded(const v1::HeldTask& held, v1::TaskVerdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeCompletion(const v1::SynchronizeRequest& request,
                      const v1::HeldTask& held, size_t index, JobChange& change,
                      Plan& plan, v1::TaskVerdict& verdict)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteDevice(const v1::Completion& completion,
                  const storage::TaskRecord& task, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RememberAction(const v1::SynchronizeRequest& request,
                      const JobChange& change, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Leases the caller should have and does not list.
  std::vector<TaskRef> SettleUnlisted(const v1::SynchronizeRequest& request,
                                      Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsAgain(const v1::SynchronizeRequest& request,
                  const storage::TaskRecord& task, size_t granted) const;
  void GrantToWorker(const v1::SynchronizeRequest& request, Plan& plan,
                     std::vector<TaskRef>& granted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GrantToAgent(const v1::SynchronizeRequest& request, Plan& plan,
                    std::vector<TaskRef>& granted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MaySuit(const TaskRef& ref, const std::string& device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const storage::TaskRecord& RecordOf(const TaskRef& ref) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TryGrant(const TaskRef& ref, const Holder& holder, Plan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool CanRead(const v1::SynchronizeRequest& request, const TaskRef& ref) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::LeasedTask> Describe(const TaskRef& ref,
                                          const v1::SynchronizeRequest& request,
                                          absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  v1::Device DescribeDevice(const storage::DeviceRecord& record, absl::Time now,
                            const std::optional<std::string>& project)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  storage::MetadataStore& store_;
  storage::BlobStore& blobs_;
  const SchedulingOptions options_;
  const std::string server_version_;
  ChangeListener listener_;
  CommitObserver observer_;
  std::function<std::string()> next_job_id_;

  // A lock of its own: calls begin while others are made durable.
  absl::Mutex calls_mutex_;
  absl::flat_hash_map<std::string, int64_t> newest_call_
      ABSL_GUARDED_BY(calls_mutex_);
  int64_t last_call_ ABSL_GUARDED_BY(calls_mutex_) = 0;

  absl::Mutex mutex_;
  std::map<std::string, LiveJob> jobs_ ABSL_GUARDED_BY(mutex_);
  // How many there are, by project.
  std::map<std::string, int> live_jobs_ ABSL_GUARDED_BY(mutex_);
  int running_jobs_ ABSL_GUARDED_BY(mutex_) = 0;
  TaskIndex index_ ABSL_GUARDED_BY(mutex_);
  DueTimes due_ ABSL_GUARDED_BY(mutex_);
  Fleet fleet_ ABSL_GUARDED_BY(mutex_);
  DeviceStates states_ ABSL_GUARDED_BY(mutex_);
  // When time changes the state of each device next, or earlier.
  DueTimes states_due_ ABSL_GUARDED_BY(mutex_);
  int64_t device_looks_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time states_looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  AwayTime away_ ABSL_GUARDED_BY(mutex_);
  int64_t last_job_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_SCHEDULER_H_
