// Carries the word that a job has new events to those who watch it. The events
// themselves are read from the store by each watcher at its own pace.

#ifndef OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_
#define OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::server {

// THREADS: methods are called from any thread, without locks of the hub held.
class JobWatcher {
 public:
  virtual ~JobWatcher() = default;
  // The job has new events.
  virtual void OnNews() = 0;
  // The server stops; nothing more will come.
  virtual void OnClose() = 0;
};

// THREADS: safe.
class EventHub {
 public:
  explicit EventHub(size_t max_watchers = 2000) : max_watchers_(max_watchers) {}

  // From now on `watcher` hears of the job, until it is unsubscribed or gone.
  // ERRORS: Unavailable when there are too many watchers, or after Close.
  absl::Status Subscribe(const std::string& job_id,
                         const std::shared_ptr<JobWatcher>& watcher);
  void Unsubscribe(const std::string& job_id, const JobWatcher* watcher);

  void Notify(const std::vector<std::string>& job_ids);
  // Calls OnClose of every watcher; later ones are refused.
  void Close();

 private:
  using Watchers = std::map<const JobWatcher*, std::weak_ptr<JobWatcher>>;

  const size_t max_watchers_;
  absl::Mutex mutex_;
  std::map<std::string, Watchers> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_
