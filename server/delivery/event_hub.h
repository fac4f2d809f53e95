// Carries the word that a job has new events to those who watch it, on a thread
// of its own: who makes the events, heartbeats among them, never waits for who
// watches. The events themselves are read from the store by each watcher at its
// own pace.

#ifndef OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_
#define OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::server {

// THREADS: methods are called from the hub's thread, without its locks held;
// OnClose from whoever closes it.
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
  struct Options {
    // UNITS: watchers, of all projects and of one.
    size_t max_watchers = 2000;
    size_t max_of_project = 500;
  };

  explicit EventHub(const Options& options);
  // Tells nobody any more.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // From now on `watcher`, who calls for `project`, hears of the job, until it
  // is unsubscribed or gone.
  // ERRORS: Unavailable when there are too many watchers, or after Close.
  absl::Status Subscribe(const std::string& project, const std::string& job_id,
                         const std::shared_ptr<JobWatcher>& watcher);
  void Unsubscribe(const std::string& job_id, const JobWatcher* watcher);

  // Their watchers hear of it soon. Jobs that have none cost nothing.
  void Notify(const std::vector<std::string>& job_ids);
  // Calls OnClose of every watcher; later ones are refused.
  void Close();

 private:
  struct Watcher {
    std::string project;
    std::weak_ptr<JobWatcher> watcher;
  };
  using Watchers = std::map<const JobWatcher*, Watcher>;

  void Loop();
  // Waits for news and takes them. Empty: the hub ends.
  std::vector<std::shared_ptr<JobWatcher>> TakeNews();

  const Options options_;
  absl::Mutex mutex_;
  std::map<std::string, Watchers> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, size_t> of_project_ ABSL_GUARDED_BY(mutex_);
  // Jobs whose watchers have not been told yet.
  std::set<std::string> news_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_EVENT_HUB_H_
