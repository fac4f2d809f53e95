// A client of one project: uploads models, submits jobs with request ids and
// tries again until it has an answer, cancels some, and watches each by the
// sequence of its events until its end.

#ifndef OPTFARM_TESTS_SIMULATION_CLIENT_H_
#define OPTFARM_TESTS_SIMULATION_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/access/access_control.h"
#include "tests/simulation/farm_rules.h"
#include "tests/simulation/server_host.h"
#include "tests/simulation/world.h"

namespace optfarm::simulation {

// THREADS: one thread at a time.
class Client {
 public:
  // `devices`: what its jobs may ask for. OWNERSHIP: all outlive it.
  Client(World& world, ServerHost& server, FarmRules& rules,
         std::string project, std::vector<std::string> devices);

  // Submits so many jobs, with pauses between them.
  void Submit(int jobs);
  // Jobs that were submitted and whose end it has not seen.
  int open_jobs() const { return open_jobs_; }
  int done_jobs() const { return done_jobs_; }

 private:
  struct Job {
    v1::SubmitJobRequest request;
    std::string model;
    std::string job_id;
    int64_t seen = 0;
    int tries = 0;
  };
  using JobPtr = std::shared_ptr<Job>;

  JobPtr MakeJob();
  void TrySubmit(const JobPtr& job);
  void TakeAnswer(const JobPtr& job,
                  const absl::StatusOr<server::SubmitResult>& result);
  void Upload(const JobPtr& job);
  void TryCancel(const JobPtr& job);
  void Watch(const JobPtr& job);
  void TakeEvents(const JobPtr& job, const std::vector<v1::JobEvent>& events);
  void SeenToItsEnd(const JobPtr& job);
  absl::Duration Wait(const JobPtr& job);

  World& world_;
  ServerHost& server_;
  FarmRules& rules_;
  server::Caller caller_;
  const std::vector<std::string> devices_;
  int made_ = 0;
  int open_jobs_ = 0;
  int done_jobs_ = 0;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_CLIENT_H_
