#include "server/delivery/job_watch.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

constexpr int kEventsARead = 100;

class JobWatch final : public WatchStream<v1::WatchJobRequest, v1::JobEvent>,
                       public JobWatcher {
 public:
  JobWatch(AdmitWatch admit, EventHub& hub, storage::MetadataStore& store)
      : WatchStream("optfarm.v1.JobService.WatchJob"),
        admit_(std::move(admit)),
        hub_(hub),
        store_(store) {}

  void OnNews() override {
    news_ = true;
    Signal();
  }
  void OnClose() override { Close(); }

 private:
  absl::StatusOr<AdmittedWatch> Admit() override { return admit_(request()); }

  absl::Status Subscribe(const std::string& project,
                         const std::shared_ptr<WatchStream>& self) override {
    // From here on every event is either read below or announced.
    OPTFARM_RETURN_IF_ERROR(hub_.Subscribe(
        project, request().job_id(), std::static_pointer_cast<JobWatch>(self)));
    OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob job,
                             store_.GetJob(request().job_id()));
    after_ = request().after_sequence();
    if (after_ < 0 || after_ > job.last_event_sequence) {
      return absl::InvalidArgumentError(
          absl::StrCat("after_sequence is ", after_,
                       "; the job's last event is ", job.last_event_sequence));
    }
    job_ended_ = HasEnded(job.job.state);
    return absl::OkStatus();
  }
  void Unsubscribe() override { hub_.Unsubscribe(request().job_id(), this); }

  absl::StatusOr<Turn> Next(v1::JobEvent* event) override {
    while (events_.empty() && !ended_ && news_.exchange(false)) {
      OPTFARM_RETURN_IF_ERROR(ReadMore());
    }
    if (!events_.empty()) {
      *event = std::move(events_.front());
      events_.pop_front();
      return Turn::kWrite;
    }
    return ended_ || request().no_follow() ? Turn::kEnd : Turn::kWait;
  }

  // A job's last events are committed together, so a read that shows its end
  // and is not full shows all of them.
  absl::Status ReadMore() {
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<v1::JobEvent> events,
        store_.ReadEvents(request().job_id(), after_, kEventsARead,
                          !request().no_logs()));
    for (const v1::JobEvent& event : events) {
      if (event.has_log() || !request().logs_only()) events_.push_back(event);
      after_ = event.sequence();
      job_ended_ |= HasEnded(event.job_state().state());
    }
    if (events.size() == kEventsARead) {
      news_ = true;
    } else {
      ended_ = job_ended_;
    }
    return absl::OkStatus();
  }

  std::string Advice() const override {
    return absl::StrCat("watch again after event ", after_);
  }

  const AdmitWatch admit_;
  EventHub& hub_;
  storage::MetadataStore& store_;
  // There may be events that were not read.
  std::atomic<bool> news_ = true;

  // Of the thread that drives.
  int64_t after_ = 0;
  std::deque<v1::JobEvent> events_;
  // All events are read, and there will be no others.
  bool ended_ = false;
  // The job has ended; there may be more of its events to read.
  bool job_ended_ = false;
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
