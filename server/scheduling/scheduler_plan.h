// What one call of Scheduler changes. Shared by the files that implement
// Scheduler and by nobody else.

#ifndef OPTFARM_SERVER_SCHEDULING_SCHEDULER_PLAN_H_
#define OPTFARM_SERVER_SCHEDULING_SCHEDULER_PLAN_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/fleet.h"
#include "server/scheduling/job_change.h"
#include "server/scheduling/scheduler_news.h"
#include "server/scheduling/task_index.h"
#include "storage/metadata_store.h"

namespace optfarm::server {

struct SchedulerPlan {
  explicit SchedulerPlan(absl::Time time) : now(time) {}

  const absl::Time now;
  // Jobs being changed, by id.
  std::map<std::string, std::unique_ptr<JobChange>> changes;
  // What is written besides.
  storage::WriteBatch batch;
  // Devices that have been offered work.
  absl::flat_hash_set<std::string> served;
  // What it replaced in the fleet.
  FleetBefore fleet;
  // What it gives to projects: workers, and devices.
  TaskIndex::Given workers;
  TaskIndex::Given devices;
  // What it is for others; filled in by Commit, and by Tick.
  SchedulerNews news;
};

inline void Refuse(v1::TaskVerdict& verdict, v1::TaskVerdict::Verdict kind,
                   absl::string_view message) {
  verdict.set_verdict(kind);
  verdict.set_message(std::string(message));
}

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_SCHEDULER_PLAN_H_
