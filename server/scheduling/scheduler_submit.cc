// How a job that passed its checks becomes a live one.

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "server/conventions/names.h"
#include "server/scheduling/device_choice.h"
#include "server/scheduling/job_spec_check.h"
#include "server/scheduling/scheduler.h"
#include "server/scheduling/scheduler_plan.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::TaskRecord;

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

}  // namespace

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
      // Behind a blank stands the project.
      "client_request_id ",
      Quoted(client_request_id.substr(0, client_request_id.find(' '))),
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
  job.job.spec = submission.spec;
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
  const auto of_project = live_jobs_.find(submission.project);
  const int live = of_project == live_jobs_.end() ? 0 : of_project->second;
  if (live < submission.max_live_jobs) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      live, " jobs of the project ", submission.project,
      " are waiting or running, as many as a project may have; try again when "
      "some have ended"));
}

// Without its spec.
storage::NewJob Scheduler::MakeJob(const Submission& submission,
                                   absl::Time now) {
  const v1::JobSpec& spec = submission.spec;
  storage::NewJob job;
  job.job.job_id = next_job_id_ ? next_job_id_() : NewJobId();
  job.job.client_request_id = submission.client_request_id;
  job.job.spec_digest = submission.spec_digest;
  job.job.project = submission.project;
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
  std::vector<storage::BlobId> made;
  const v1::Digest& model = report->optimized_model();
  made.push_back({model.sha256(), model.size_bytes()});
  for (const v1::Artifact& artifact : report->artifacts()) {
    made.push_back(
        {artifact.digest().sha256(), artifact.digest().size_bytes()});
  }
  for (const storage::BlobId& id : made) {
    if (!blobs_.Contains(id, plan.now).value_or(false)) return;
  }
  for (storage::BlobId& id : made) {
    job.blobs.push_back(id.sha256);
    plan.batch.made_blobs.emplace_back(submission.project, std::move(id));
  }
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
    if (!fleet_.DevicesFor(device).empty()) continue;
    const std::vector<std::string> known = fleet_.WaysToAskForDevices();
    const std::optional<absl::string_view> pool = PoolOf(device);
    const std::string nearest = NearestNamesHint(device, known);
    return absl::NotFoundError(absl::StrCat(
        pool.has_value() ? "no device has the tag '" : "there is no device '",
        pool.value_or(device), "'", nearest,
        known.empty()     ? "; no agent has registered one yet"
        : nearest.empty() ? "; list the devices to see their names and tags"
                          : ""));
  }
  return CheckEnginesExist(spec);
}

// One device that has it is enough: the others say that they have not.
absl::Status Scheduler::CheckEnginesExist(const v1::JobSpec& spec) const {
  for (const std::string& engine : spec.benchmark().engines()) {
    bool is_asked = spec.benchmark().devices().empty();
    for (const std::string& asked : spec.benchmark().devices()) {
      is_asked = is_asked || fleet_.HasEngineFor(asked, engine);
    }
    if (is_asked) continue;
    const std::vector<std::string> devices = fleet_.DevicesWithEngine(engine);
    return absl::NotFoundError(absl::StrCat(
        "none of the job's devices has the engine ", engine, "; ",
        devices.empty()
            ? absl::StrCat("no device has, start its agent with --engine=",
                           engine, ":FILE")
            : absl::StrCat("devices that have it: ",
                           absl::StrJoin(devices, ", "))));
  }
  return absl::OkStatus();
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
