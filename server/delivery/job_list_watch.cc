#include "server/delivery/job_list_watch.h"

#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "server/access/call_door.h"

namespace optfarm::server {
namespace {

// Jobs that wait for a slow client.
constexpr size_t kMostWaiting = 1000;

// At any time at most one thread "drives": it starts the next write or finishes
// the call. A write under way counts as driving; OnWriteDone goes on with it.
class JobListWatch final : public JobListReactor, public JobListWatcher {
 public:
  JobListWatch(std::function<absl::StatusOr<AdmittedWatch>()> admit,
               JobListFeed& feed)
      : admit_(std::move(admit)), feed_(feed) {}

  // Hands the object to gRPC: it stays alive until OnDone.
  void Start(std::shared_ptr<JobListWatch> self,
             absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered) {
    self_ = std::move(self);
    if (!entered.ok()) return EndUnlocked(entered.status());
    stay_ = *std::move(entered);
    incoming_.stay = stay_.get();
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<JobListWatch> keep = self_;
    stay_ = nullptr;
    const absl::Status status =
        ok ? Prepare() : absl::CancelledError("no request came");
    if (!status.ok()) return EndUnlocked(status);
    Drive();
  }

  void OnJob(const std::shared_ptr<const v1::Job>& job) override {
    Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (missed_) return;
      if (waiting_.insert_or_assign(job->job_id(), job).second) {
        order_.push_back(job->job_id());
      }
      if (order_.size() > kMostWaiting) Miss();
    });
  }
  void OnMissed() override {
    Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { Miss(); });
  }
  void OnClose() override {
    Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { closed_ = true; });
  }
  void OnCancel() override {
    Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { cancelled_ = true; });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    Drive();
  }

  void OnDone() override {
    feed_.Unsubscribe(this);
    // The context, which it would cancel, goes now.
    admitted_.open = nullptr;
    self_.reset();
  }

 private:
  absl::Status Prepare() {
    OPTFARM_RETURN_IF_ERROR(incoming_.status);
    OPTFARM_ASSIGN_OR_RETURN(admitted_, admit_());
    return feed_.Subscribe(admitted_.project, self_);
  }

  void Miss() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    missed_ = true;
    waiting_.clear();
    order_.clear();
  }

  // Changes what is to be told and drives, unless somebody does already.
  template <typename What>
  void Change(What what) {
    {
      absl::MutexLock lock(&mutex_);
      what();
      if (driving_) return;
      driving_ = true;
    }
    Drive();
  }

  // REQUIRES: the caller drives.
  void Drive() {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<JobListWatch> keep = self_;
    {
      absl::MutexLock lock(&mutex_);
      if (finished_) return;
      if (cancelled_) return End(absl::CancelledError("the client left"));
      if (closed_) {
        return End(absl::UnavailableError("the server stops; watch again"));
      }
      if (!TakeNext()) {
        driving_ = false;
        return;
      }
    }
    StartWrite(&current_);
  }

  // Whether there is something to write, in current_ then.
  bool TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    current_.Clear();
    if (!std::exchange(greeted_, true)) {
      current_.mutable_ready();
    } else if (std::exchange(missed_, false)) {
      current_.mutable_missed();
    } else if (!order_.empty()) {
      const auto next = waiting_.find(order_.front());
      *current_.mutable_job() = *next->second;
      waiting_.erase(next);
      order_.pop_front();
    } else {
      return false;
    }
    return true;
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    Finish(CallDoor::Answer(status));
  }
  void EndUnlocked(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    End(status);
  }

  const std::function<absl::StatusOr<AdmittedWatch>()> admit_;
  BoundedRequest<v1::WatchJobsRequest> incoming_{
      "optfarm.v1.JobService.WatchJobs"};
  std::unique_ptr<CallRoom::Stay> stay_;
  AdmittedWatch admitted_;
  JobListFeed& feed_;
  std::shared_ptr<JobListWatch> self_;
  // Of the thread that drives.
  v1::JobListEvent current_;

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const v1::Job>> waiting_
      ABSL_GUARDED_BY(mutex_);
  // The keys of waiting_, in the order of their first change.
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool missed_ ABSL_GUARDED_BY(mutex_) = false;
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
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
