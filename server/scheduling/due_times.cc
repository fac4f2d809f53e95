#include "server/scheduling/due_times.h"

namespace optfarm::server {

void DueTimes::Set(const std::string& job_id, absl::Time due) {
  const auto [known, added] = times_.try_emplace(job_id, due);
  if (!added) {
    if (known->second == due) return;
    order_.erase({known->second, job_id});
    known->second = due;
  }
  order_.emplace(due, job_id);
}

void DueTimes::Erase(const std::string& job_id) {
  const auto known = times_.find(job_id);
  if (known == times_.end()) return;
  order_.erase({known->second, job_id});
  times_.erase(known);
}

std::vector<std::string> DueTimes::PassedAt(absl::Time now) const {
  std::vector<std::string> passed;
  for (const auto& [due, job_id] : order_) {
    if (due > now) break;
    passed.push_back(job_id);
  }
  return passed;
}

absl::Time DueTimes::FirstAfter(absl::Time now) const {
  for (const auto& [due, job_id] : order_) {
    if (due > now) return due;
  }
  return absl::InfiniteFuture();
}

}  // namespace optfarm::server
