#include "server/long_polls.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace optfarm::server {

struct LongPolls::Poll {
  v1::SynchronizeRequest request;
  int64_t call = 0;
  absl::Time deadline;
  SynchronizeReply reply;
};

LongPolls::LongPolls(Scheduler& scheduler, std::function<void()> wake)
    : scheduler_(scheduler), wake_(std::move(wake)) {}

void LongPolls::Serve(const v1::SynchronizeRequest& request, int64_t call,
                      absl::Time now, SynchronizeReply reply) {
  // A held call of the same participant has become an older one.
  std::vector<int64_t> replaced;
  int64_t changes_before;
  {
    absl::MutexLock lock(&mutex_);
    changes_before = changes_;
    for (const auto& [number, poll] : polls_) {
      // Calls may come out of order; a newer one is not replaced.
      if (number < call &&
          poll->request.participant_id() == request.participant_id()) {
        replaced.push_back(number);
      }
    }
  }
  for (const int64_t number : replaced) {
    if (const auto poll = Take(number)) {
      poll->reply(
          absl::AbortedError("a newer call of the same participant "
                             "took over"));
    }
  }
  const auto result = scheduler_.Synchronize(request, call, now);
  if (!result.ok()) return reply(result.status());
  if (result->hold <= absl::ZeroDuration()) return reply(result->response);

  auto poll = std::make_shared<Poll>();
  poll->request = request;
  // Told once; what is asked again is only whether there is work.
  poll->request.clear_builtin_recipes();
  poll->call = call;
  poll->deadline = now + result->hold;
  poll->reply = std::move(reply);
  bool sooner;
  bool missed;
  {
    absl::MutexLock lock(&mutex_);
    sooner = poll->deadline < next_run_;
    next_run_ = std::min(next_run_, poll->deadline);
    polls_[call] = std::move(poll);
    missed = changes_ != changes_before;
  }
  // Somebody has to know of the new deadline, or of the change.
  if (sooner || missed) wake_();
}

std::shared_ptr<LongPolls::Poll> LongPolls::Take(int64_t call) {
  absl::MutexLock lock(&mutex_);
  const auto found = polls_.find(call);
  if (found == polls_.end()) return nullptr;
  std::shared_ptr<Poll> poll = std::move(found->second);
  polls_.erase(found);
  return poll;
}

void LongPolls::Abandon(int64_t call) {
  if (const auto poll = Take(call)) {
    poll->reply(absl::CancelledError("the caller went away"));
  }
}

void LongPolls::NoteChange() {
  {
    absl::MutexLock lock(&mutex_);
    ++changes_;
  }
  wake_();
}

absl::Time LongPolls::Run(absl::Time now) {
  std::vector<std::shared_ptr<Poll>> held;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [call, poll] : polls_) held.push_back(poll);
    // A call that comes meanwhile is not among these.
    next_run_ = absl::InfiniteFuture();
  }
  absl::Time next = absl::InfiniteFuture();
  for (const std::shared_ptr<Poll>& poll : held) {
    const auto result = scheduler_.Synchronize(poll->request, poll->call, now);
    if (result.ok() && result->hold > absl::ZeroDuration() &&
        now < poll->deadline) {
      next = std::min(next, poll->deadline);
      continue;
    }
    // Whoever takes it out answers it; it may be abandoned already.
    if (Take(poll->call) == nullptr) continue;
    if (result.ok()) {
      poll->reply(result->response);
    } else {
      poll->reply(result.status());
    }
  }
  absl::MutexLock lock(&mutex_);
  next_run_ = std::min(next_run_, next);
  return next;
}

}  // namespace optfarm::server
