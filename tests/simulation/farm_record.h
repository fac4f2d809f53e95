// What the store must hold, made from the batches that it said it took: jobs,
// tasks, events and results. It can be changed by a batch as the store is, and
// compared with what a store really holds.

#ifndef OPTFARM_TESTS_SIMULATION_FARM_RECORD_H_
#define OPTFARM_TESTS_SIMULATION_FARM_RECORD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "storage/metadata_store.h"

namespace optfarm::simulation {

struct TaskEntry {
  v1::TaskKind kind = v1::OPTIMIZE;
  v1::TaskState state = v1::BLOCKED;
  int attempt = 0;
  int accepted_attempt = 0;
  int failed_attempts = 0;
  int max_attempts = 0;
  double progress = 0;
  std::string participant_id;
  std::string device;
  int results = 0;
  // On the server's clock.
  absl::Time not_before = absl::InfinitePast();
};

struct JobEntry {
  std::string request_id;
  std::string project;
  v1::JobSpec spec;
  v1::JobState state = v1::QUEUED;
  // On the server's clock.
  absl::Time create_time = absl::InfinitePast();
  absl::Time end_time = absl::InfinitePast();
  bool has_report = false;
  std::map<std::string, TaskEntry> tasks;
  // Hashes of the events, in order of sequence.
  std::vector<uint64_t> events;
};

class FarmRecord {
 public:
  // Takes over what a batch writes.
  void Apply(const storage::WriteBatch& batch);

  // The first thing in which the store differs; empty: none. Jobs that ended
  // before `kept_since` may be gone.
  std::string Compare(storage::MetadataStore& store, absl::Time kept_since);

  std::map<std::string, JobEntry>& jobs() { return jobs_; }
  const std::map<std::string, JobEntry>& jobs() const { return jobs_; }
  // Null when there is none.
  JobEntry* FindJob(const std::string& job_id);
  TaskEntry* FindTask(const std::string& task_id);
  // Of a project, or of all where it is empty.
  int LiveJobs(const std::string& project) const;

 private:
  std::string CompareJob(storage::MetadataStore& store,
                         const std::string& job_id, const JobEntry& job) const;

  std::map<std::string, JobEntry> jobs_;
};

// FNV-1a of an event without its sequence number.
uint64_t HashOf(const v1::JobEvent& event);

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_FARM_RECORD_H_
