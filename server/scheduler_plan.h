// Scheduler::Plan, shared by the files that implement Scheduler and by nobody
// else.

#ifndef OPTFARM_SERVER_SCHEDULER_PLAN_H_
#define OPTFARM_SERVER_SCHEDULER_PLAN_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/scheduler.h"

namespace optfarm::server {

struct Scheduler::Plan {
  explicit Plan(absl::Time time) : now(time) {}

  const absl::Time now;
  // Jobs being changed, by id.
  std::map<std::string, std::unique_ptr<JobChange>> changes;
  // What is written besides.
  storage::WriteBatch batch;
  // Jobs with durable changes; filled in by Commit.
  std::vector<std::string> changed;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULER_PLAN_H_
