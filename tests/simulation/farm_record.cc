#include "tests/simulation/farm_record.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::simulation {
namespace {

void Take(TaskEntry& entry, const storage::TaskRecord& task) {
  entry.kind = task.kind;
  entry.state = task.state;
  entry.attempt = task.attempt;
  entry.accepted_attempt = task.accepted_attempt;
  entry.failed_attempts = task.failed_attempts;
  entry.max_attempts = task.max_attempts;
  entry.progress = task.progress;
  entry.participant_id = task.participant_id;
  entry.device = task.device;
  entry.not_before = task.not_before;
}

std::string Describe(const TaskEntry& task) {
  return absl::StrCat(v1::TaskState_Name(task.state), " attempt ", task.attempt,
                      " accepted ", task.accepted_attempt, " failed ",
                      task.failed_attempts, " progress ", task.progress,
                      " held by ", task.participant_id, " on ", task.device,
                      " results ", task.results);
}

}  // namespace

uint64_t HashOf(const v1::JobEvent& event) {
  v1::JobEvent same = event;
  same.clear_sequence();
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : same.SerializeAsString()) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

JobEntry* FarmRecord::FindJob(const std::string& job_id) {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : &found->second;
}

TaskEntry* FarmRecord::FindTask(const std::string& task_id) {
  JobEntry* job = FindJob(std::string(server::JobIdOfTask(task_id)));
  if (job == nullptr) return nullptr;
  const auto found = job->tasks.find(task_id);
  return found == job->tasks.end() ? nullptr : &found->second;
}

int FarmRecord::LiveJobs(const std::string& project) const {
  int live = 0;
  for (const auto& [job_id, job] : jobs_) {
    live += !server::HasEnded(job.state) &&
            (project.empty() || job.project == project);
  }
  return live;
}

void FarmRecord::Apply(const storage::WriteBatch& batch) {
  for (const storage::NewJob& added : batch.new_jobs) {
    JobEntry& job = jobs_[added.job.job_id];
    job.request_id = added.job.client_request_id;
    job.project = added.job.project;
    job.spec = added.job.spec;
    job.state = added.job.state;
    job.create_time = added.job.create_time;
    for (const storage::TaskRecord& task : added.tasks) {
      Take(job.tasks[task.task_id], task);
    }
  }
  for (const storage::JobRecord& changed : batch.jobs) {
    JobEntry& job = jobs_[changed.job_id];
    job.state = changed.state;
    job.end_time = changed.end_time;
  }
  for (const storage::TaskUpdate& changed : batch.tasks) {
    TaskEntry* task = FindTask(changed.task.task_id);
    if (task != nullptr) Take(*task, changed.task);
  }
  for (const storage::EventRecord& event : batch.events) {
    jobs_[event.job_id].events.push_back(HashOf(event.event));
  }
  for (const storage::MeasurementRecord& row : batch.measurements) {
    TaskEntry* task = FindTask(row.task_id);
    if (task != nullptr) ++task->results;
  }
  for (const storage::ReportRecord& report : batch.reports) {
    jobs_[report.job_id].has_report = true;
  }
}

std::string FarmRecord::CompareJob(storage::MetadataStore& store,
                                   const std::string& job_id,
                                   const JobEntry& job) const {
  const auto stored = store.GetJob(job_id);
  if (!stored.ok()) {
    return absl::StrCat("job ", job_id, ": ", stored.status().ToString());
  }
  if (stored->job.state != job.state ||
      stored->job.client_request_id != job.request_id ||
      stored->job.project != job.project) {
    return absl::StrCat("job ", job_id, " is ",
                        v1::JobState_Name(stored->job.state), ", not ",
                        v1::JobState_Name(job.state));
  }
  if (stored->tasks.size() != job.tasks.size()) {
    return absl::StrCat("job ", job_id, " has ", stored->tasks.size(),
                        " tasks");
  }
  std::map<std::string, int> results;
  storage::MeasurementFilter filter;
  filter.job_id = job_id;
  const auto rows = store.QueryMeasurements(filter, {0, 1000});
  if (!rows.ok()) return rows.status().ToString();
  for (const auto& row : *rows) ++results[row.task_id];
  for (const storage::TaskRecord& task : stored->tasks) {
    TaskEntry found;
    Take(found, task);
    found.results = results[task.task_id];
    const auto known = job.tasks.find(task.task_id);
    const std::string expected =
        known == job.tasks.end() ? "nothing" : Describe(known->second);
    if (Describe(found) != expected) {
      return absl::StrCat("task ", task.task_id, " is ", Describe(found),
                          "; it must be ", expected);
    }
  }
  const auto events = store.ReadEvents(job_id, 0, 1 << 20, true);
  if (!events.ok()) return events.status().ToString();
  std::vector<uint64_t> hashes;
  for (const v1::JobEvent& event : *events) hashes.push_back(HashOf(event));
  if (hashes != job.events) {
    return absl::StrCat("job ", job_id, " has ", hashes.size(), " events, not ",
                        job.events.size(), ", or others");
  }
  if (store.GetReport(job_id).ok() != job.has_report) {
    return absl::StrCat("job ", job_id, ": its report is not as it was");
  }
  return "";
}

std::string FarmRecord::Compare(storage::MetadataStore& store,
                                absl::Time kept_since) {
  size_t stored = 0;
  storage::PageRequest page{0, 1000};
  const auto listed = store.ListJobs({}, page);
  if (!listed.ok()) return listed.status().ToString();
  stored = listed->size();
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const std::string difference = CompareJob(store, job->first, job->second);
    if (difference.empty()) {
      ++job;
      continue;
    }
    // What was let go of is never asked for again.
    const bool may_be_gone =
        server::HasEnded(job->second.state) &&
        job->second.end_time < kept_since &&
        absl::IsNotFound(store.GetJob(job->first).status());
    if (!may_be_gone) return difference;
    job = jobs_.erase(job);
  }
  if (stored == jobs_.size()) return "";
  return absl::StrCat("there are ", stored, " jobs, not ", jobs_.size());
}

}  // namespace optfarm::simulation
