#include "server/delivery/event_hub.h"

#include "absl/strings/str_cat.h"

namespace optfarm::server {

absl::Status EventHub::Subscribe(const std::string& job_id,
                                 const std::shared_ptr<JobWatcher>& watcher) {
  absl::MutexLock lock(&mutex_);
  if (closed_) {
    return absl::UnavailableError("the server is stopping; try again later");
  }
  if (count_ >= max_watchers_) {
    return absl::UnavailableError(
        absl::StrCat(count_,
                     " watches are open, which is all this server "
                     "takes; try again later"));
  }
  if (jobs_[job_id].try_emplace(watcher.get(), watcher).second) ++count_;
  return absl::OkStatus();
}

void EventHub::Unsubscribe(const std::string& job_id,
                           const JobWatcher* watcher) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return;
  count_ -= found->second.erase(watcher);
  if (found->second.empty()) jobs_.erase(found);
}

void EventHub::Notify(const std::vector<std::string>& job_ids) {
  std::vector<std::shared_ptr<JobWatcher>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& job_id : job_ids) {
      const auto found = jobs_.find(job_id);
      if (found == jobs_.end()) continue;
      for (const auto& [key, watcher] : found->second) {
        if (auto alive = watcher.lock()) watchers.push_back(std::move(alive));
      }
    }
  }
  for (const auto& watcher : watchers) watcher->OnNews();
}

void EventHub::Close() {
  std::vector<std::shared_ptr<JobWatcher>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (const auto& [job_id, of_job] : jobs_) {
      for (const auto& [key, watcher] : of_job) {
        if (auto alive = watcher.lock()) watchers.push_back(std::move(alive));
      }
    }
  }
  for (const auto& watcher : watchers) watcher->OnClose();
}

}  // namespace optfarm::server
