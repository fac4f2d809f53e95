// Who gets which task, and how a task is told to its holder.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "rpc/proto_time.h"
#include "server/scheduling/deprecated_data.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/job_spec_check.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::TaskRecord;

// Optimize tasks in one answer; with kMaxSpecBytes of job_spec_check.cc this
// keeps it within the message limit.
constexpr int kMaxGrantsACall = 8;
// What workers call a model of another format as the graph that devices read,
// and the samples that devices compare their answers with.
constexpr absl::string_view kFloatGraph = "float.pb";
constexpr absl::string_view kFloatCheck = "check_float.pb";
constexpr absl::string_view kOptimizedCheck = "check_optimized.pb";

const v1::Artifact* FindArtifact(const v1::Report& report,
                                 absl::string_view name) {
  for (const v1::Artifact& artifact : report.artifacts()) {
    if (artifact.name() == name) return &artifact;
  }
  return nullptr;
}

// The files of each engine's format: those that the worker wrote, and the model
// as given where it has that format.
void AddEngineModels(const v1::JobSpec& spec, const v1::Report& report,
                     bool optimized, v1::BenchmarkVariant* variant) {
  for (const std::string& engine : spec.benchmark().engines()) {
    const std::string ending = absl::StrCat(".", EngineFormatName(engine));
    v1::NamedBlob model = spec.model();
    if (optimized) {
      const v1::Artifact* file =
          FindArtifact(report, absl::StrCat("optimized", ending));
      if (file == nullptr) continue;
      model.set_name(file->name());
      *model.mutable_digest() = file->digest();
    } else if (FindArtifact(report, kFloatGraph) == nullptr ||
               !absl::EndsWithIgnoreCase(model.name(), ending)) {
      continue;
    }
    v1::EngineModel& made = *variant->add_engine_models();
    made.set_engine(engine);
    *made.mutable_model() = std::move(model);
  }
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

}  // namespace

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
                           plan.batch, plan.fleet);
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

const TaskRecord& Scheduler::RecordOf(const TaskRef& ref) const {
  return jobs_.at(ref.job_id).tasks[ref.index].record;
}

bool Scheduler::TryGrant(const TaskRef& ref, const Holder& holder, Plan& plan) {
  if (!IsLeasable(RecordOf(ref), plan.now)) return false;
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
  if (granted.size() >= wanted) return;
  index_.ForEachToOptimize(
      plan.workers,
      [&](const TaskRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        if (!CanRead(request, ref) || !TryGrant(ref, holder, plan)) {
          return TaskIndex::Look::kGoOn;
        }
        granted.push_back(ref);
        return granted.size() < wanted ? TaskIndex::Look::kTaken
                                       : TaskIndex::Look::kTakenAndStop;
      });
}

// Workers from before there were sources read the deprecated fields alone;
// those from before there were formats write none.
bool Scheduler::CanRead(const v1::SynchronizeRequest& request,
                        const TaskRef& ref) const {
  const v1::JobSpec& spec = *jobs_.at(ref.job_id).spec;
  return (request.reads_data_sources() ||
          FitsDeprecatedFields(spec.calibration())) &&
         (request.writes_out_formats() || spec.out_formats().empty());
}

bool Scheduler::MayTakeWork(const v1::DeviceStatus& status, absl::Time now) {
  const std::string& device = status.info().name();
  return status.ready() && !status.disabled() && fleet_.MayWork(device, now) &&
         index_.LeasedOnDevice(device) == nullptr;
}

bool Scheduler::MayHaveWork(const v1::DeviceStatus& status, absl::Time now) {
  if (!MayTakeWork(status, now)) return false;
  const std::string& device = status.info().name();
  bool work = false;
  TaskIndex::Given nothing;
  index_.ForEachToMeasure(
      WaysToAskFor(status.info()), fleet_.ReservedFor(device, now), nothing,
      [&](const TaskRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        work = IsLeasable(RecordOf(ref), now) && MaySuit(ref, device);
        return work ? TaskIndex::Look::kStop : TaskIndex::Look::kGoOn;
      });
  return work;
}

bool Scheduler::MayHaveWork(const v1::SynchronizeRequest& request,
                            absl::Time now) {
  bool work = false;
  TaskIndex::Given nothing;
  index_.ForEachToOptimize(
      nothing, [&](const TaskRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        work = IsLeasable(RecordOf(ref), now) && CanRead(request, ref);
        return work ? TaskIndex::Look::kStop : TaskIndex::Look::kGoOn;
      });
  return work;
}

void Scheduler::GrantToAgent(const v1::SynchronizeRequest& request, Plan& plan,
                             std::vector<TaskRef>& granted) {
  for (const v1::DeviceStatus& status : request.devices()) {
    const std::string& device = status.info().name();
    if (!MayTakeWork(status, plan.now) || !plan.served.insert(device).second) {
      continue;
    }
    const Holder holder{request.participant_id(), request.name(), device};
    index_.ForEachToMeasure(
        WaysToAskFor(status.info()), fleet_.ReservedFor(device, plan.now),
        plan.devices,
        [&](const TaskRef& ref) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          if (!MaySuit(ref, device) || !TryGrant(ref, holder, plan)) {
            return TaskIndex::Look::kGoOn;
          }
          granted.push_back(ref);
          return TaskIndex::Look::kTakenAndStop;
        });
  }
}

// A device that the job measures anyway does not count as another of a pool.
bool Scheduler::MaySuit(const TaskRef& ref, const std::string& device) const {
  const LiveJob& job = jobs_.at(ref.job_id);
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    if (i != ref.index && job.tasks[i].record.device == device) return false;
  }
  return true;
}

std::string Scheduler::WhyItWaits(const LiveJob& job, size_t index,
                                  absl::Time now) {
  const TaskRecord& task = job.tasks[index].record;
  if (task.not_before > now) {
    return absl::StrCat("tried again in ",
                        absl::FormatDuration(absl::Ceil(task.not_before - now,
                                                        absl::Seconds(1))));
  }
  std::string why = "waits for its turn";
  if (task.kind == v1::OPTIMIZE &&
      fleet_.CountParticipants(v1::SynchronizeRequest::WORKER,
                               now - options_.offline_after) == 0) {
    why = "waits for a worker: none has called lately";
  } else if (index_.LeasedOnDevice(task.device) != nullptr) {
    why = "waits for its device, which works";
  }
  const TaskIndex::Place place = index_.PlaceOf(
      job.job.project, TaskRef{job.job.number, job.job.job_id, index}, task);
  if (place.before > 0) {
    absl::StrAppend(&why, "; older tasks of its project: ", place.before);
  }
  if (place.other_projects > 0) {
    absl::StrAppend(&why,
                    "; other projects that take turns: ", place.other_projects);
  }
  return why;
}

void Scheduler::ExplainWaits(storage::StoredJob& job, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  index_.EndWaits(now);
  const auto live = jobs_.find(job.job.job_id);
  if (live == jobs_.end()) return;
  const size_t tasks = std::min(job.tasks.size(), live->second.tasks.size());
  for (size_t i = 0; i < tasks; ++i) {
    if (job.tasks[i].state != v1::READY ||
        live->second.tasks[i].record.state != v1::READY) {
      continue;
    }
    job.tasks[i].progress_message = WhyItWaits(live->second, i, now);
  }
}

absl::StatusOr<v1::LeasedTask> Scheduler::Describe(
    const TaskRef& ref, const v1::SynchronizeRequest& request, absl::Time now) {
  const LiveJob& job = jobs_.at(ref.job_id);
  const TaskRecord& task = job.tasks[ref.index].record;
  v1::LeasedTask lease;
  lease.set_task_id(task.task_id);
  lease.set_attempt(task.attempt);
  lease.set_job_id(ref.job_id);
  *lease.mutable_lease_deadline() = rpc::ToTimestamp(task.lease_deadline);
  *lease.mutable_lease_duration() =
      rpc::ToProtoDuration(task.lease_deadline - now);
  const JobLimits limits = LimitsOf(*job.spec, options_);
  *lease.mutable_run_limit() =
      rpc::ToProtoDuration(task.attempt_start_time + limits.run +
                           away_.Since(task.attempt_start_time) - now);
  if (task.kind == v1::OPTIMIZE) {
    v1::OptimizeTask& work = *lease.mutable_optimize();
    *work.mutable_model() = job.spec->model();
    *work.mutable_recipe() = job.spec->recipe();
    *work.mutable_inputs() = job.spec->inputs();
    *work.mutable_outputs() = job.spec->outputs();
    *work.mutable_out_formats() = job.spec->out_formats();
    if (job.spec->has_calibration()) {
      *work.mutable_calibration() = job.spec->calibration();
      if (!request.reads_data_sources()) UseDeprecatedFields(&work);
    }
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
      if (!optimized && artifact.name() == kFloatGraph) {
        variant.mutable_model()->set_name(artifact.name());
        *variant.mutable_model()->mutable_digest() = artifact.digest();
      }
      if (artifact.name() == (optimized ? kOptimizedCheck : kFloatCheck)) {
        *variant.mutable_check_sample() = artifact.digest();
      }
    }
    AddEngineModels(*job.spec, report, optimized, &variant);
    *variant.mutable_inputs() = report.inputs();
    *variant.mutable_outputs() = report.outputs();
  }
  return lease;
}

}  // namespace optfarm::server
