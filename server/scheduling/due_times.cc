#include "server/scheduling/due_times.h"

namespace optfarm::server {

void DueTimes::Set(const std::string& id, absl::Time due) {
  const auto [known, added] = times_.try_emplace(id, due);
  if (!added) {
    if (known->second == due) return;
    order_.erase({known->second, id});
    known->second = due;
  }
  order_.emplace(due, id);
}

void DueTimes::Erase(const std::string& id) {
  const auto known = times_.find(id);
  if (known == times_.end()) return;
  order_.erase({known->second, id});
  times_.erase(known);
}

std::vector<std::string> DueTimes::PassedAt(absl::Time now) const {
  std::vector<std::string> passed;
  for (const auto& [due, id] : order_) {
    if (due > now) break;
    passed.push_back(id);
  }
  return passed;
}

absl::Time DueTimes::FirstAfter(absl::Time now) const {
  for (const auto& [due, id] : order_) {
    if (due > now) return due;
  }
  return absl::InfiniteFuture();
}

}  // namespace optfarm::server
