#include "server/delivery/job_list_watch.h"

#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace optfarm::server {
namespace {

// Jobs that wait for a slow client.
constexpr size_t kMostWaiting = 1000;

class JobListWatch final
    : public WatchStream<v1::WatchJobsRequest, v1::JobListEvent>,
      public JobListWatcher {
 public:
  JobListWatch(std::function<absl::StatusOr<AdmittedWatch>()> admit,
               JobListFeed& feed)
      : WatchStream("optfarm.v1.JobService.WatchJobs"),
        admit_(std::move(admit)),
        feed_(feed) {}

  void OnJob(const std::shared_ptr<const v1::Job>& job) override {
    {
      absl::MutexLock lock(&mutex_);
      if (missed_) return;
      if (waiting_.insert_or_assign(job->job_id(), job).second) {
        order_.push_back(job->job_id());
      }
      if (order_.size() > kMostWaiting) Miss();
    }
    Signal();
  }
  void OnMissed() override {
    {
      absl::MutexLock lock(&mutex_);
      Miss();
    }
    Signal();
  }
  void OnClose() override { Close(); }

 private:
  absl::StatusOr<AdmittedWatch> Admit() override { return admit_(); }
  absl::Status Subscribe(const std::string& project,
                         const std::shared_ptr<WatchStream>& self) override {
    return feed_.Subscribe(project,
                           std::static_pointer_cast<JobListWatch>(self));
  }
  void Unsubscribe() override { feed_.Unsubscribe(this); }

  void Miss() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    missed_ = true;
    waiting_.clear();
    order_.clear();
  }

  absl::StatusOr<Turn> Next(v1::JobListEvent* event) override {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(greeted_, true)) {
      event->mutable_ready();
    } else if (std::exchange(missed_, false)) {
      event->mutable_missed();
    } else if (!order_.empty()) {
      const auto next = waiting_.find(order_.front());
      *event->mutable_job() = *next->second;
      waiting_.erase(next);
      order_.pop_front();
    } else {
      return Turn::kWait;
    }
    return Turn::kWrite;
  }

  std::string Advice() const override { return "watch again"; }

  const std::function<absl::StatusOr<AdmittedWatch>()> admit_;
  JobListFeed& feed_;

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const v1::Job>> waiting_
      ABSL_GUARDED_BY(mutex_);
  // The keys of waiting_, in the order of their first change.
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool missed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

JobListReactor* StartJobListWatch(
    absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered,
    std::function<absl::StatusOr<AdmittedWatch>()> admit, JobListFeed& feed) {
  auto watch = std::make_shared<JobListWatch>(std::move(admit), feed);
  JobListWatch* const reactor = watch.get();
  reactor->Start(std::move(watch), std::move(entered));
  return reactor;
}

}  // namespace optfarm::server
