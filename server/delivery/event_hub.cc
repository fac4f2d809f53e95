#include "server/delivery/event_hub.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::server {

EventHub::EventHub(const Options& options)
    : options_(options), thread_([this] { Loop(); }) {}

EventHub::~EventHub() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

absl::Status EventHub::Subscribe(const std::string& project,
                                 const std::string& job_id,
                                 const std::shared_ptr<JobWatcher>& watcher) {
  absl::MutexLock lock(&mutex_);
  if (closed_) {
    return absl::UnavailableError("the server is stopping; try again later");
  }
  const auto own = of_project_.find(project);
  const size_t own_count = own == of_project_.end() ? 0 : own->second;
  if (count_ >= options_.max_watchers || own_count >= options_.max_of_project) {
    return absl::UnavailableError(absl::StrCat(
        count_, " watches are open, ", own_count,
        " of them this project's, which is all this server takes; try again "
        "later"));
  }
  if (jobs_[job_id]
          .try_emplace(watcher.get(), Watcher{project, watcher})
          .second) {
    ++count_;
    ++of_project_[project];
  }
  return absl::OkStatus();
}

void EventHub::Unsubscribe(const std::string& job_id,
                           const JobWatcher* watcher) {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) return;
  const auto one = found->second.find(watcher);
  if (one == found->second.end()) return;
  const auto own = of_project_.find(one->second.project);
  if (--own->second == 0) of_project_.erase(own);
  --count_;
  found->second.erase(one);
  if (found->second.empty()) jobs_.erase(found);
}

void EventHub::Notify(const std::vector<std::string>& job_ids) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& job_id : job_ids) {
    if (jobs_.contains(job_id)) news_.insert(job_id);
  }
}

std::vector<std::shared_ptr<JobWatcher>> EventHub::TakeNews() {
  std::vector<std::shared_ptr<JobWatcher>> watchers;
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || !news_.empty();
  };
  absl::MutexLock lock(&mutex_);
  while (watchers.empty()) {
    mutex_.Await(absl::Condition(&something));
    if (ending_) return {};
    for (const std::string& job_id : news_) {
      const auto found = jobs_.find(job_id);
      if (found == jobs_.end()) continue;
      for (const auto& [key, one] : found->second) {
        if (auto alive = one.watcher.lock()) {
          watchers.push_back(std::move(alive));
        }
      }
    }
    news_.clear();
  }
  return watchers;
}

void EventHub::Loop() {
  while (true) {
    const std::vector<std::shared_ptr<JobWatcher>> watchers = TakeNews();
    if (watchers.empty()) return;
    for (const auto& watcher : watchers) watcher->OnNews();
  }
}

void EventHub::Close() {
  std::vector<std::shared_ptr<JobWatcher>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    for (const auto& [job_id, of_job] : jobs_) {
      for (const auto& [key, one] : of_job) {
        if (auto alive = one.watcher.lock()) {
          watchers.push_back(std::move(alive));
        }
      }
    }
  }
  for (const auto& watcher : watchers) watcher->OnClose();
}

}  // namespace optfarm::server
