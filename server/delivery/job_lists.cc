#include "server/delivery/job_lists.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/delivery/job_view.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

// Verdicts that are remembered; some 15 MB.
constexpr int kMostVerdicts = 50'000;
constexpr size_t kMostJobs = 20'000;

}  // namespace

absl::StatusOr<v1::Job> JobLists::Read(const std::string& job_id) {
  storage::JobFilter filter;
  filter.job_id_prefix = job_id;
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::StoredJob> jobs,
                           store_.ListJobs(filter, {0, 2}));
  for (storage::StoredJob& job : jobs) {
    if (job.job.job_id != job_id) continue;
    scheduler_.RefreshLeases(job);
    v1::Job shown = ToProto(job);
    OPTFARM_RETURN_IF_ERROR(AddVerdicts(shown));
    return shown;
  }
  return storage::NoSuchJob(job_id);
}

absl::Status JobLists::AddVerdicts(v1::Job& job) {
  if (!HasEnded(job.state())) return absl::OkStatus();
  {
    absl::MutexLock lock(&mutex_);
    const auto known = known_.find(job.job_id());
    if (known != known_.end()) {
      *job.mutable_verdicts() = *known->second;
      return absl::OkStatus();
    }
  }
  v1::Job whole = job;
  OPTFARM_RETURN_IF_ERROR(AddOutcome(store_, whole));
  *job.mutable_verdicts() = whole.verdicts();
  Remember(job.job_id(), std::move(*whole.mutable_verdicts()));
  return absl::OkStatus();
}

void JobLists::Remember(const std::string& job_id, Verdicts verdicts) {
  absl::MutexLock lock(&mutex_);
  const int more = verdicts.size();
  if (!known_
           .try_emplace(job_id,
                        std::make_shared<const Verdicts>(std::move(verdicts)))
           .second) {
    return;
  }
  order_.push_back(job_id);
  count_ += more;
  while (count_ > kMostVerdicts || order_.size() > kMostJobs) {
    const auto oldest = known_.find(order_.front());
    count_ -= oldest->second->size();
    known_.erase(oldest);
    order_.pop_front();
  }
}

}  // namespace optfarm::server
