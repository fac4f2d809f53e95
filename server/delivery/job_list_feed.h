// Reads the jobs that changed, each once for all who watch lists of jobs, and
// hands them out: to those of the job's project and to those who see all. On a
// thread of its own, so that who changes a job never waits for who watches.

#ifndef OPTFARM_SERVER_DELIVERY_JOB_LIST_FEED_H_
#define OPTFARM_SERVER_DELIVERY_JOB_LIST_FEED_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::server {

// THREADS: OnJob and OnMissed are called from the feed's thread, without its
// locks held; OnClose from whoever closes it.
class JobListWatcher {
 public:
  virtual ~JobListWatcher() = default;
  // The job is new or has changed.
  virtual void OnJob(const std::shared_ptr<const v1::Job>& job) = 0;
  // More jobs changed than the feed takes.
  virtual void OnMissed() = 0;
  // The server stops; nothing more will come.
  virtual void OnClose() = 0;
};

// THREADS: safe.
class JobListFeed {
 public:
  struct Options {
    // UNITS: watchers, of all projects and of one.
    size_t max_watchers = 400;
    size_t max_of_project = 100;
    // UNITS: jobs that have changed and have not been read yet.
    size_t max_changed = 2000;
    // Changes of one job within this time are one.
    absl::Duration interval = absl::Milliseconds(250);
  };
  using ReadJob = std::function<absl::StatusOr<v1::Job>(const std::string&)>;

  JobListFeed(const Options& options, ReadJob read);
  // Tells nobody any more.
  ~JobListFeed();
  JobListFeed(const JobListFeed&) = delete;
  JobListFeed& operator=(const JobListFeed&) = delete;

  // From now on `watcher` hears of the jobs of the project (empty: of all),
  // until it is unsubscribed or gone.
  // ERRORS: Unavailable when there are too many watchers, or after Close.
  absl::Status Subscribe(const std::string& project,
                         const std::shared_ptr<JobListWatcher>& watcher);
  void Unsubscribe(const JobListWatcher* watcher);

  // Watchers hear of them soon. Costs nothing while nobody watches.
  void Notify(const std::vector<std::string>& job_ids);
  // Calls OnClose of every watcher; later ones are refused.
  void Close();

 private:
  struct Watcher {
    std::string project;
    std::weak_ptr<JobListWatcher> watcher;
  };
  struct News {
    std::vector<std::string> job_ids;
    bool missed = false;
  };

  void Loop();
  // Waits for changes and takes them. False: the feed ends.
  bool TakeNews(News& news);
  void Tell(const News& news);
  // Those who see a project; with no project, all.
  std::vector<std::shared_ptr<JobListWatcher>> WatchersOf(
      const std::string* project);

  const Options options_;
  const ReadJob read_;
  absl::Mutex mutex_;
  std::map<const JobListWatcher*, Watcher> watchers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> of_project_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> changed_ ABSL_GUARDED_BY(mutex_);
  bool missed_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_DELIVERY_JOB_LIST_FEED_H_
