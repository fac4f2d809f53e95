#include "server/delivery/job_list_feed.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace optfarm::server {

JobListFeed::JobListFeed(const Options& options, ReadJob read)
    : options_(options), read_(std::move(read)), thread_([this] { Loop(); }) {}

JobListFeed::~JobListFeed() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

absl::Status JobListFeed::Subscribe(
    const std::string& project,
    const std::shared_ptr<JobListWatcher>& watcher) {
  absl::MutexLock lock(&mutex_);
  if (closed_) {
    return absl::UnavailableError("the server is stopping; try again later");
  }
  const auto own = of_project_.find(project);
  const size_t own_count = own == of_project_.end() ? 0 : own->second;
  if (watchers_.size() >= options_.max_watchers ||
      own_count >= options_.max_of_project) {
    return absl::UnavailableError(absl::StrCat(
        watchers_.size(), " lists of jobs are being watched, ", own_count,
        " of them this project's, which is all this server takes; ask for the "
        "list every few seconds instead"));
  }
  if (watchers_.try_emplace(watcher.get(), Watcher{project, watcher}).second) {
    ++of_project_[project];
  }
  return absl::OkStatus();
}

void JobListFeed::Unsubscribe(const JobListWatcher* watcher) {
  absl::MutexLock lock(&mutex_);
  const auto found = watchers_.find(watcher);
  if (found == watchers_.end()) return;
  const auto own = of_project_.find(found->second.project);
  if (--own->second == 0) of_project_.erase(own);
  watchers_.erase(found);
}

void JobListFeed::Notify(const std::vector<std::string>& job_ids) {
  absl::MutexLock lock(&mutex_);
  if (watchers_.empty() || missed_) return;
  changed_.insert(job_ids.begin(), job_ids.end());
  if (changed_.size() <= options_.max_changed) return;
  changed_.clear();
  missed_ = true;
}

bool JobListFeed::TakeNews(News& news) {
  const auto something = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ending_ || missed_ || !changed_.empty();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&something));
  mutex_.AwaitWithTimeout(absl::Condition(&ending_), options_.interval);
  if (ending_) return false;
  news.job_ids.assign(changed_.begin(), changed_.end());
  news.missed = missed_;
  changed_.clear();
  missed_ = false;
  return true;
}

std::vector<std::shared_ptr<JobListWatcher>> JobListFeed::WatchersOf(
    const std::string* project) {
  std::vector<std::shared_ptr<JobListWatcher>> watchers;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, one] : watchers_) {
    if (project != nullptr && !one.project.empty() && one.project != *project) {
      continue;
    }
    if (auto alive = one.watcher.lock()) watchers.push_back(std::move(alive));
  }
  return watchers;
}

void JobListFeed::Tell(const News& news) {
  bool missed = news.missed;
  for (const std::string& job_id : news.job_ids) {
    absl::StatusOr<v1::Job> job = read_(job_id);
    if (!job.ok()) {
      LogWarning("reading job ", job_id,
                 " for those who watch: ", job.status().message());
      missed = true;
      continue;
    }
    const auto shared = std::make_shared<const v1::Job>(*std::move(job));
    for (const auto& watcher : WatchersOf(&shared->project())) {
      watcher->OnJob(shared);
    }
  }
  if (!missed) return;
  for (const auto& watcher : WatchersOf(nullptr)) watcher->OnMissed();
}

void JobListFeed::Loop() {
  News news;
  while (TakeNews(news)) Tell(news);
}

void JobListFeed::Close() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  for (const auto& watcher : WatchersOf(nullptr)) watcher->OnClose();
}

}  // namespace optfarm::server
