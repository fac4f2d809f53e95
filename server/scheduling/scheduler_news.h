// What the scheduler tells those who wait for something.

#ifndef OPTFARM_SERVER_SCHEDULING_SCHEDULER_NEWS_H_
#define OPTFARM_SERVER_SCHEDULING_SCHEDULER_NEWS_H_

#include <string>
#include <vector>

namespace optfarm::server {

// What may be news for others.
struct SchedulerNews {
  // Jobs with durable changes.
  std::vector<std::string> changed_jobs;
  // Jobs of which a task has waited long enough to be tried again.
  std::vector<std::string> ready_jobs;
  // Devices that may take work which they might not take before.
  std::vector<std::string> free_devices;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_SCHEDULER_NEWS_H_
