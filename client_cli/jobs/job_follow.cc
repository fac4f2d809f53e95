#include "client_cli/jobs/job_follow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/human_units.h"
#include "client_cli/flags/exit_code.h"
#include "rpc/retry.h"

namespace optfarm::client_cli {
namespace {

// Longer than an absent server takes to be noticed.
constexpr absl::Duration kLivedLong = absl::Minutes(1);

// One attachment to a job and all that has to survive until the next.
class Follower {
 public:
  Follower(FarmClient* client, const std::string& job_id,
           const FollowOptions& options)
      : client_(client),
        job_id_(job_id),
        options_(options),
        start_(options.clock->Now()),
        attached_(start_),
        after_(options.after_sequence),
        backoff_(rpc::BackoffOptions{}, absl::ToUnixNanos(start_)) {}

  absl::StatusOr<v1::Job> Run() {
    while (true) {
      attached_ = options_.clock->Now();
      absl::Status status = Watch();
      if (status.ok()) {
        absl::StatusOr<v1::Job> job = client_->GetJob(job_id_);
        if (job.ok()) {
          Contact();
          if (HasEnded(job->state())) return job;
          // The server ended the stream early: it drains. Ask again.
          status = absl::UnavailableError("the server ended the stream");
        } else {
          status = job.status();
        }
      }
      if (TimeIsUp()) return TimeoutError();
      if (!rpc::IsTransient(status)) return status;
      if (AwayFor() >= options_.patience) return GivenUp(status);
      if (options_.on_lost) options_.on_lost(status);
      options_.clock->Sleep(std::min(backoff_.Next(), Remaining()));
    }
  }

 private:
  absl::Status Watch() {
    v1::WatchJobRequest request;
    request.set_job_id(job_id_);
    request.set_after_sequence(after_);
    request.set_no_logs(options_.no_logs);
    return client_->WatchJob(request, Remaining(),
                             [this](const v1::JobEvent& event) {
                               // A repeated event would be a server's defect;
                               // it is not shown twice.
                               if (event.sequence() <= after_) return;
                               after_ = event.sequence();
                               Contact();
                               if (options_.on_event) options_.on_event(event);
                             });
  }

  void Contact() {
    lost_ = absl::InfiniteFuture();
    backoff_.Reset();
  }

  // How long the server has been away. A stream that lived for a while was
  // attached, even if nothing happened to the job in that time.
  absl::Duration AwayFor() {
    const absl::Time now = options_.clock->Now();
    if (now - attached_ > kLivedLong) Contact();
    lost_ = std::min(lost_, now);
    return now - lost_;
  }

  absl::Duration Remaining() const {
    return std::max(options_.timeout - (options_.clock->Now() - start_),
                    absl::ZeroDuration());
  }
  // A call's deadline is in whole milliseconds.
  bool TimeIsUp() const { return Remaining() < absl::Milliseconds(1); }

  absl::Status TimeoutError() const {
    return WithExitCode(
        absl::DeadlineExceededError(absl::StrCat(
            "job ", job_id_, " has not ended within ",
            HumanDuration(options_.timeout),
            "; it goes on, follow it with: optctl watch ", job_id_)),
        ExitCode::kTimeout);
  }

  absl::Status GivenUp(const absl::Status& status) const {
    return WithExitCode(
        absl::UnavailableError(absl::StrCat(
            "no answer for ", HumanDuration(options_.patience), " while job ",
            job_id_,
            " was followed; it goes on without us: ", status.message())),
        ExitCode::kUnavailable);
  }

  FarmClient* const client_;
  const std::string job_id_;
  const FollowOptions& options_;
  const absl::Time start_;
  // When the last stream was begun.
  absl::Time attached_;
  // When the server was first found to be away; future: it is not.
  absl::Time lost_ = absl::InfiniteFuture();
  int64_t after_;
  rpc::Backoff backoff_;
};

}  // namespace

absl::StatusOr<v1::Job> FollowJob(FarmClient* client, const std::string& job_id,
                                  const FollowOptions& options) {
  return Follower(client, job_id, options).Run();
}

void RemarkOnWorkers(FarmClient& client, std::ostream& err) {
  const absl::StatusOr<v1::WhoAmIResponse> farm = client.WhoAmI();
  // A server that is older than this answer sends no time in it.
  if (!farm.ok() || !farm->has_time() || farm->workers() > 0) return;
  err << "No worker is connected: the job waits for one (scripts/farm start, "
         "or optfarm-worker --server=...)."
      << std::endl;
}

std::string GoesOnText(const std::string& job_id) {
  return absl::StrCat("\nJob ", job_id, " goes on: optctl watch ", job_id,
                      " (optctl cancel ", job_id, " ends it)\n");
}

bool HasEnded(v1::JobState state) {
  return state == v1::SUCCEEDED || state == v1::FAILED ||
         state == v1::CANCELLED;
}

}  // namespace optfarm::client_cli
