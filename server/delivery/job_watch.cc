#include "server/delivery/job_watch.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "server/access/call_door.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

constexpr int kEventsARead = 100;

// At any time at most one thread "drives": it reads from the store and starts
// the next write or finishes the call. A write under way counts as driving;
// OnWriteDone goes on with it.
class JobWatch final : public WatchReactor, public JobWatcher {
 public:
  JobWatch(AdmitWatch admit, EventHub& hub, storage::MetadataStore& store)
      : admit_(std::move(admit)), hub_(hub), store_(store) {}

  // Hands the object to gRPC: it stays alive until OnDone.
  void Start(std::shared_ptr<JobWatch> self,
             absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered) {
    self_ = std::move(self);
    if (!entered.ok()) return EndUnlocked(entered.status());
    stay_ = *std::move(entered);
    incoming_.stay = stay_.get();
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<JobWatch> keep = self_;
    stay_ = nullptr;
    const absl::Status status =
        ok ? Prepare() : absl::CancelledError("no request came");
    if (!status.ok()) return EndUnlocked(status);
    Drive();
  }

  void OnNews() override { Signal(&JobWatch::news_); }
  void OnClose() override { Signal(&JobWatch::closed_); }
  void OnCancel() override { Signal(&JobWatch::cancelled_); }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    Drive();
  }

  void OnDone() override {
    hub_.Unsubscribe(request_.job_id(), this);
    // The context, which it would cancel, goes now.
    admitted_.open = nullptr;
    self_.reset();
  }

 private:
  absl::Status Prepare() {
    OPTFARM_RETURN_IF_ERROR(incoming_.status);
    OPTFARM_ASSIGN_OR_RETURN(admitted_, admit_(request_));
    // From here on every event is either read below or announced.
    OPTFARM_RETURN_IF_ERROR(
        hub_.Subscribe(admitted_.project, request_.job_id(), self_));
    OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob job,
                             store_.GetJob(request_.job_id()));
    after_ = request_.after_sequence();
    if (after_ < 0 || after_ > job.last_event_sequence) {
      return absl::InvalidArgumentError(
          absl::StrCat("after_sequence is ", after_,
                       "; the job's last event is ", job.last_event_sequence));
    }
    job_ended_ = HasEnded(job.job.state);
    return absl::OkStatus();
  }

  // Sets a flag and drives, unless somebody does already.
  void Signal(bool JobWatch::*flag) {
    {
      absl::MutexLock lock(&mutex_);
      this->*flag = true;
      if (driving_) return;
      driving_ = true;
    }
    Drive();
  }

  // REQUIRES: the caller drives.
  void Drive() {
    // After Finish another thread may run OnDone before this one has returned.
    const std::shared_ptr<JobWatch> keep = self_;
    while (true) {
      bool may_read;
      {
        absl::MutexLock lock(&mutex_);
        if (finished_) return;
        if (cancelled_) return End(absl::CancelledError("the client left"));
        may_read = news_;
      }
      if (!events_.empty()) return WriteNext();
      if (ended_) return EndUnlocked(absl::OkStatus());
      if (may_read) {
        const absl::Status status = ReadMore();
        if (!status.ok()) return EndUnlocked(status);
        continue;
      }
      absl::MutexLock lock(&mutex_);
      if (news_ || cancelled_) continue;
      if (closed_) {
        return End(absl::UnavailableError(absl::StrCat(
            "the server stops; watch again after event ", after_)));
      }
      if (request_.no_follow()) return End(absl::OkStatus());
      driving_ = false;
      return;
    }
  }

  void WriteNext() {
    current_ = std::move(events_.front());
    events_.pop_front();
    StartWrite(&current_);
  }

  // A job's last events are committed together, so a read that shows its end
  // and is not full shows all of them.
  absl::Status ReadMore() {
    {
      absl::MutexLock lock(&mutex_);
      news_ = false;
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<v1::JobEvent> events,
        store_.ReadEvents(request_.job_id(), after_, kEventsARead,
                          !request_.no_logs()));
    for (const v1::JobEvent& event : events) {
      if (event.has_log() || !request_.logs_only()) events_.push_back(event);
      after_ = event.sequence();
      job_ended_ |= HasEnded(event.job_state().state());
    }
    if (events.size() == kEventsARead) {
      absl::MutexLock lock(&mutex_);
      news_ = true;
    } else {
      ended_ = job_ended_;
    }
    return absl::OkStatus();
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    finished_ = true;
    Finish(CallDoor::Answer(status));
  }
  void EndUnlocked(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    End(status);
  }

  const AdmitWatch admit_;
  BoundedRequest<v1::WatchJobRequest> incoming_{
      "optfarm.v1.JobService.WatchJob"};
  const v1::WatchJobRequest& request_ = incoming_.message;
  std::unique_ptr<CallRoom::Stay> stay_;
  AdmittedWatch admitted_;
  EventHub& hub_;
  storage::MetadataStore& store_;
  std::shared_ptr<JobWatch> self_;

  // Of the thread that drives.
  int64_t after_ = 0;
  std::deque<v1::JobEvent> events_;
  v1::JobEvent current_;
  bool ended_ = false;
  // The job has ended; there may be more of its events to read.
  bool job_ended_ = false;

  absl::Mutex mutex_;
  bool driving_ ABSL_GUARDED_BY(mutex_) = true;
  bool news_ ABSL_GUARDED_BY(mutex_) = true;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

WatchReactor* StartJobWatch(
    absl::StatusOr<std::unique_ptr<CallRoom::Stay>> entered, AdmitWatch admit,
    EventHub& hub, storage::MetadataStore& store) {
  auto watch = std::make_shared<JobWatch>(std::move(admit), hub, store);
  JobWatch* const reactor = watch.get();
  reactor->Start(std::move(watch), std::move(entered));
  return reactor;
}

}  // namespace optfarm::server
