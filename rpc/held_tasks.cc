#include "rpc/held_tasks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace optfarm::rpc {
namespace {

constexpr size_t kMaxProgressMessage = 200;

// The bytes of a file from `offset`, at most kMaxLogChunkBytes; nothing when
// it cannot be read: a log is never worth failing a task.
std::string ReadChunk(const std::string& path, int64_t offset) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string chunk(kMaxLogChunkBytes, '\0');
  const ssize_t n = ::pread(fd, chunk.data(), chunk.size(), offset);
  ::close(fd);
  chunk.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return chunk;
}

// Cuts at a character's beginning, so that the text stays UTF-8.
absl::string_view CutLine(absl::string_view line) {
  line = line.substr(0, line.find('\n'));
  if (line.size() <= kMaxProgressMessage) return line;
  size_t end = kMaxProgressMessage;
  while (end > 0 && (line[end] & 0xC0) == 0x80) --end;
  return line.substr(0, end);
}

}  // namespace

void HeldTask::SetLogFile(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  log_path_ = path;
}

void HeldTask::SetProgress(double fraction, absl::string_view message) {
  absl::MutexLock lock(&mutex_);
  // Written so that NaN becomes 0.
  progress_ = fraction > 0 ? std::min(fraction, 1.0) : 0.0;
  progress_message_ = std::string(CutLine(message));
}

bool HeldTask::ShouldStop() const {
  absl::MutexLock lock(&mutex_);
  return dropped_ || release_requested_;
}

bool HeldTask::IsDropped() const {
  absl::MutexLock lock(&mutex_);
  return dropped_;
}

void HeldTask::Complete(v1::Completion completion) {
  {
    absl::MutexLock lock(&mutex_);
    // A dropped task keeps the decision that says so.
    if (dropped_) return;
    decision_ = nullptr;
    completion_ = std::make_unique<v1::Completion>(std::move(completion));
  }
  if (wake_) wake_();
}

Decision HeldTask::AwaitDecision() {
  absl::MutexLock lock(&mutex_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return decision_ != nullptr;
  };
  mutex_.Await(absl::Condition(&decided));
  return *decision_;
}

void HeldTask::RequestRelease() {
  absl::MutexLock lock(&mutex_);
  release_requested_ = true;
}

void HeldTask::Drop() {
  absl::MutexLock lock(&mutex_);
  dropped_ = true;
  completion_ = nullptr;
  decision_ = std::make_unique<Decision>();
  decision_->kind = Decision::Kind::kDropped;
}

void HeldTask::Describe(v1::HeldTask* held) const {
  absl::MutexLock lock(&mutex_);
  held->set_task_id(lease_.task_id());
  held->set_attempt(lease_.attempt());
  held->set_progress(progress_);
  held->set_progress_message(progress_message_);
  held->set_log_offset(log_sent_);
  if (!log_path_.empty() && log_sent_ < kMaxLiveLogBytes) {
    *held->mutable_log_chunk() = ReadChunk(log_path_, log_sent_);
  }
  // The log goes first, so that those who watch see its end.
  const bool log_complete =
      static_cast<int64_t>(held->log_chunk().size()) < kMaxLogChunkBytes;
  if (completion_ != nullptr && log_complete) {
    *held->mutable_completion() = *completion_;
  }
}

bool HeldTask::TakeVerdict(const v1::HeldTask& sent,
                           const v1::TaskVerdict& verdict) {
  absl::MutexLock lock(&mutex_);
  log_sent_ = std::max<int64_t>(
      log_sent_,
      sent.log_offset() + static_cast<int64_t>(sent.log_chunk().size()));
  Decision decision;
  decision.message = verdict.message();
  switch (verdict.verdict()) {
    case v1::TaskVerdict::COMPLETION_ACCEPTED:
      decision.kind = Decision::Kind::kAccepted;
      break;
    case v1::TaskVerdict::CANCEL:
    case v1::TaskVerdict::STALE:
      decision.kind = Decision::Kind::kDropped;
      dropped_ = true;
      break;
    case v1::TaskVerdict::COMPLETION_REFUSED:
      if (!sent.has_completion()) return false;
      decision.kind = Decision::Kind::kRefused;
      decision.missing_blobs.assign(verdict.missing_blobs().begin(),
                                    verdict.missing_blobs().end());
      break;
    default:
      return false;
  }
  completion_ = nullptr;
  const bool over = decision.kind != Decision::Kind::kRefused;
  decision_ = std::make_unique<Decision>(std::move(decision));
  return over;
}

bool HeldTasks::empty() const {
  absl::MutexLock lock(&mutex_);
  return tasks_.empty();
}

void HeldTasks::Fill(v1::SynchronizeRequest* request) const {
  absl::MutexLock lock(&mutex_);
  request->clear_held();
  for (const auto& task : tasks_) task->Describe(request->add_held());
}

std::shared_ptr<HeldTask> HeldTasks::Find(absl::string_view task_id,
                                          int attempt) const {
  for (const auto& task : tasks_) {
    if (task->lease().task_id() == task_id &&
        task->lease().attempt() == attempt) {
      return task;
    }
  }
  return nullptr;
}

std::vector<std::shared_ptr<HeldTask>> HeldTasks::Apply(
    const v1::SynchronizeRequest& request,
    const v1::SynchronizeResponse& response) {
  absl::MutexLock lock(&mutex_);
  for (const v1::TaskVerdict& verdict : response.verdicts()) {
    const std::shared_ptr<HeldTask> task =
        Find(verdict.task_id(), verdict.attempt());
    const auto sent =
        std::find_if(request.held().begin(), request.held().end(),
                     [&](const v1::HeldTask& held) {
                       return held.task_id() == verdict.task_id() &&
                              held.attempt() == verdict.attempt();
                     });
    if (task == nullptr || sent == request.held().end()) continue;
    if (!task->TakeVerdict(*sent, verdict)) continue;
    LogInfo("task ", verdict.task_id(), " attempt ", verdict.attempt(), ": ",
            v1::TaskVerdict::Verdict_Name(verdict.verdict()),
            verdict.message().empty() ? "" : ", ", verdict.message());
    tasks_.erase(std::find(tasks_.begin(), tasks_.end(), task));
  }
  std::vector<std::shared_ptr<HeldTask>> fresh;
  for (const v1::LeasedTask& lease : response.new_tasks()) {
    if (Find(lease.task_id(), lease.attempt()) != nullptr) continue;
    fresh.push_back(std::make_shared<HeldTask>(lease, wake_));
    tasks_.push_back(fresh.back());
  }
  return fresh;
}

void HeldTasks::RequestRelease() {
  absl::MutexLock lock(&mutex_);
  for (const auto& task : tasks_) task->RequestRelease();
}

void HeldTasks::DropAll() {
  absl::MutexLock lock(&mutex_);
  for (const auto& task : tasks_) task->Drop();
  tasks_.clear();
}

}  // namespace optfarm::rpc
