// What must hold at every step, whatever fails: checked at each commit, each
// answer and each restart. The state machines and promises are written here
// once more, from proto/optfarm/v1, and not taken from the server.

#ifndef OPTFARM_TESTS_SIMULATION_FARM_RULES_H_
#define OPTFARM_TESTS_SIMULATION_FARM_RULES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/scheduling_policy.h"
#include "storage/metadata_store.h"
#include "tests/simulation/farm_record.h"
#include "tests/simulation/up_time.h"
#include "tests/simulation/world.h"

namespace optfarm::simulation {

// THREADS: one thread at a time.
class FarmRules {
 public:
  // OWNERSHIP: the world outlives it.
  FarmRules(World& world, const server::SchedulingOptions& options,
            int max_live_jobs_of_project)
      : world_(world),
        options_(options),
        max_live_of_project_(max_live_jobs_of_project) {}

  // Jobs that ended before that may have been let go of.
  void SetKeptSince(absl::Time kept_since) { kept_since_ = kept_since; }
  // A client that is told that there is no such job may be told right.
  bool MayBeGone(const std::string& job_id);

  // The store was asked to write the batch, and answered.
  void Committed(const storage::WriteBatch& batch, const absl::Status& status);
  // The server starts again, and the store is as it survived.
  void Restarted(storage::MetadataStore& store);
  // A participant is told that it holds a lease until then.
  void Promised(const std::string& task_id, int attempt, absl::Time until);
  // The server answers a worker or an agent.
  void Answered(const v1::SynchronizeRequest& request,
                const v1::SynchronizeResponse& response);
  // A client is told that its job is accepted.
  void Accepted(const std::string& request_id, const std::string& job_id);
  // A client asks again what became of a job that was accepted.
  void SawEvents(const std::string& job_id, int64_t after,
                 const std::vector<v1::JobEvent>& events);
  // The server is well and has looked at its deadlines.
  void CheckDeadlines();

  UpTime& up_time() { return up_time_; }
  const FarmRecord& record() const { return record_; }
  int64_t commits() const { return commits_; }
  int64_t refused() const { return refused_; }

 private:
  // What the events of one batch make of its jobs and tasks, step by step.
  struct Walk {
    std::map<std::string, v1::JobState> jobs;
    std::map<std::string, v1::TaskState> tasks;
    std::map<std::string, int> done;
  };

  void CheckBatch(const storage::WriteBatch& batch);
  void CheckNewJobs(const storage::WriteBatch& batch);
  void CheckEvents(const storage::WriteBatch& batch, Walk& walk);
  void CheckJobEvent(const std::string& job_id, const v1::JobEvent& event,
                     Walk& walk);
  void CheckTaskEvent(const v1::JobEvent& event, Walk& walk);
  void CheckWhyItEnded(const v1::JobEvent& event, const v1::Failure& failure);
  void CheckTasks(const storage::WriteBatch& batch, const Walk& walk);
  void CheckResults(const storage::WriteBatch& batch, const Walk& walk);
  void NoteTimes(const storage::WriteBatch& batch);
  void CheckDevices();

  World& world_;
  const server::SchedulingOptions options_;
  const int max_live_of_project_;
  UpTime up_time_;
  FarmRecord record_;
  absl::Time kept_since_ = absl::InfinitePast();
  // Batches that were refused since the last that was taken: one of them may
  // be there after all when the server starts again.
  std::vector<storage::WriteBatch> in_doubt_;
  std::map<std::string, std::string> accepted_;
  // On the simulation's clock.
  std::map<std::string, absl::Time> created_;
  std::map<std::string, absl::Time> ready_;
  std::map<std::string, absl::Time> leased_;
  std::map<std::pair<std::string, int>, absl::Time> promised_;
  int64_t commits_ = 0;
  int64_t refused_ = 0;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_FARM_RULES_H_
