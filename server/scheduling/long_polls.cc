#include "server/scheduling/long_polls.h"

#include <algorithm>
#include <utility>

namespace optfarm::server {

struct LongPolls::Poll {
  v1::SynchronizeRequest request;
  int64_t call = 0;
  absl::Time deadline;
  SynchronizeReply reply;
  std::shared_ptr<const std::atomic<bool>> hung_up;
};

LongPolls::LongPolls(Scheduler& scheduler, std::function<void()> wake)
    : scheduler_(scheduler), wake_(std::move(wake)) {}

void LongPolls::Serve(std::vector<IncomingCall> calls) {
  AnswerReplaced(calls);
  std::vector<NumberedCall> asked;
  absl::Time now = absl::InfinitePast();
  for (const IncomingCall& call : calls) {
    asked.push_back({call.request, call.number});
    now = std::max(now, call.time);
  }
  int64_t changes_before;
  {
    absl::MutexLock lock(&mutex_);
    changes_before = changes_;
  }
  const auto results = scheduler_.Synchronize(asked, now);
  std::vector<std::shared_ptr<Poll>> held;
  for (size_t i = 0; i < calls.size(); ++i) {
    IncomingCall& call = calls[i];
    if (!results[i].ok()) {
      call.reply(results[i].status());
    } else if (results[i]->hold <= absl::ZeroDuration()) {
      call.reply(results[i]->response);
    } else {
      Poll& poll = *held.emplace_back(std::make_shared<Poll>());
      poll.request = *call.request;
      // Told once; what is asked again is only whether there is work.
      poll.request.clear_builtin_recipes();
      poll.call = call.number;
      poll.deadline = call.time + results[i]->hold;
      poll.reply = std::move(call.reply);
      poll.hung_up = std::move(call.hung_up);
    }
  }
  if (!held.empty()) Hold(std::move(held), changes_before);
}

// A held call of the same participant has become an older one. Calls may come
// out of order; a newer one is not replaced.
void LongPolls::AnswerReplaced(const std::vector<IncomingCall>& calls) {
  std::vector<int64_t> replaced;
  {
    absl::MutexLock lock(&mutex_);
    for (const IncomingCall& call : calls) {
      const auto held = by_participant_.find(call.request->participant_id());
      if (held != by_participant_.end() && held->second < call.number) {
        replaced.push_back(held->second);
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
}

void LongPolls::Hold(std::vector<std::shared_ptr<Poll>> polls,
                     int64_t changes_before) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    // Somebody has to know of a change that came meanwhile.
    wake = changes_ != changes_before;
    for (const std::shared_ptr<Poll>& poll : polls) {
      wake |= poll->deadline < next_run_;
      next_run_ = std::min(next_run_, poll->deadline);
      polls_[poll->call] = poll;
      int64_t& newest = by_participant_[poll->request.participant_id()];
      newest = std::max(newest, poll->call);
    }
  }
  for (const std::shared_ptr<Poll>& poll : polls) {
    // It may have been too early to abandon the call.
    if (poll->hung_up != nullptr && *poll->hung_up) Abandon(poll->call);
  }
  if (wake) wake_();
}

std::shared_ptr<LongPolls::Poll> LongPolls::Take(int64_t call) {
  absl::MutexLock lock(&mutex_);
  const auto found = polls_.find(call);
  if (found == polls_.end()) return nullptr;
  std::shared_ptr<Poll> poll = std::move(found->second);
  polls_.erase(found);
  const auto newest = by_participant_.find(poll->request.participant_id());
  if (newest != by_participant_.end() && newest->second == call) {
    by_participant_.erase(newest);
  }
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

std::vector<std::shared_ptr<LongPolls::Poll>> LongPolls::WorthAsking(
    std::vector<std::shared_ptr<Poll>> held, absl::Time now) {
  std::vector<const v1::SynchronizeRequest*> requests;
  for (const auto& poll : held) requests.push_back(&poll->request);
  const std::vector<bool> news = scheduler_.MayHaveNews(requests, now);
  std::vector<std::shared_ptr<Poll>> worth;
  for (size_t i = 0; i < held.size(); ++i) {
    if (news[i] || now >= held[i]->deadline) {
      worth.push_back(std::move(held[i]));
    }
  }
  return worth;
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
  for (const auto& poll : held) {
    if (poll->deadline > now) next = std::min(next, poll->deadline);
  }
  const auto asked = WorthAsking(std::move(held), now);
  std::vector<NumberedCall> calls;
  for (const auto& poll : asked) calls.push_back({&poll->request, poll->call});
  const auto results = scheduler_.Synchronize(calls, now);
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto& result = results[i];
    if (result.ok() && result->hold > absl::ZeroDuration() &&
        now < asked[i]->deadline) {
      continue;
    }
    // Whoever takes it out answers it; it may be abandoned already.
    if (Take(asked[i]->call) == nullptr) continue;
    if (result.ok()) {
      asked[i]->reply(result->response);
    } else {
      asked[i]->reply(result.status());
    }
  }
  absl::MutexLock lock(&mutex_);
  next_run_ = std::min(next_run_, next);
  return next;
}

}  // namespace optfarm::server
