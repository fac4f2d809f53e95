#include "server/scheduling/long_polls.h"

#include <algorithm>
#include <utility>

namespace optfarm::server {

namespace {

// How long a change that no job's change tells may go unseen.
constexpr absl::Duration kAskAllEvery = absl::Seconds(1);

}  // namespace

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
  Polls held;
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
      const auto held = polls_.NewestOf(call.request->participant_id());
      if (held.has_value() && *held < call.number) replaced.push_back(*held);
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

void LongPolls::Hold(Polls polls, int64_t changes_before) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    // Somebody has to know of a change that came meanwhile.
    const bool missed = changes_ != changes_before;
    wake = missed;
    for (const std::shared_ptr<Poll>& poll : polls) {
      wake |= poll->deadline < next_run_;
      next_run_ = std::min(next_run_, poll->deadline);
      if (missed) missed_.insert(poll->call);
      polls_.Add(poll);
    }
  }
  for (const std::shared_ptr<Poll>& poll : polls) {
    // It may have been too early to abandon the call.
    if (poll->hung_up != nullptr && *poll->hung_up) Abandon(poll->call);
  }
  if (wake) wake_();
}

std::shared_ptr<HeldPoll> LongPolls::Take(int64_t call) {
  absl::MutexLock lock(&mutex_);
  return polls_.Take(call);
}

void LongPolls::Abandon(int64_t call) {
  if (const auto poll = Take(call)) {
    poll->reply(absl::CancelledError("the caller went away"));
  }
}

void LongPolls::NoteChange(const std::vector<std::string>& job_ids) {
  {
    absl::MutexLock lock(&mutex_);
    ++changes_;
    ask_all_ |= job_ids.empty();
    changed_.insert(job_ids.begin(), job_ids.end());
  }
  wake_();
}

LongPolls::Polls LongPolls::Find(const HeldPolls::Calls& calls) {
  Polls found;
  absl::MutexLock lock(&mutex_);
  for (const int64_t call : calls) {
    std::shared_ptr<Poll> poll = polls_.Find(call);
    if (poll != nullptr) found.push_back(std::move(poll));
  }
  return found;
}

LongPolls::Polls LongPolls::WorthAsking(Polls held, absl::Time now) {
  std::vector<const v1::SynchronizeRequest*> requests;
  for (const auto& poll : held) requests.push_back(&poll->request);
  const std::vector<bool> news = scheduler_.MayHaveNews(requests, now);
  Polls worth;
  for (size_t i = 0; i < held.size(); ++i) {
    if (news[i] || now >= held[i]->deadline) {
      worth.push_back(std::move(held[i]));
    }
  }
  return worth;
}

void LongPolls::AddTakers(size_t count, const Adder& add, absl::Time now,
                          HeldPolls::Calls& calls) {
  // Some may not be given work now, so that there have to be more to choose
  // from.
  for (size_t most = count;; most *= 2) {
    HeldPolls::Calls candidates;
    {
      absl::MutexLock lock(&mutex_);
      add(most, candidates);
    }
    const Polls takers = WorthAsking(Find(candidates), now);
    if (takers.size() < count && candidates.size() == most) continue;
    for (size_t i = 0; i < std::min(count, takers.size()); ++i) {
      calls.insert(takers[i]->call);
    }
    return;
  }
}

LongPolls::Polls LongPolls::Concerned(absl::Time now, bool& all) {
  HeldPolls::Calls calls;
  std::set<std::string> changed;
  {
    absl::MutexLock lock(&mutex_);
    // A call that comes meanwhile is not among these.
    next_run_ = absl::InfiniteFuture();
    changed = std::exchange(changed_, {});
    calls = std::exchange(missed_, {});
    // A clock that was set back puts nothing off.
    all |= std::exchange(ask_all_, false) ||
           absl::AbsDuration(now - asked_all_) >= kAskAllEvery;
    if (all) {
      asked_all_ = now;
      Polls everyone;
      for (const auto& [call, poll] : polls_.all()) everyone.push_back(poll);
      return everyone;
    }
    polls_.AddPassed(now, calls);
  }
  const Scheduler::Openings openings = scheduler_.OpeningsOf(
      std::vector<std::string>(changed.begin(), changed.end()), now);
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& job_id : changed) {
      polls_.AddHoldersOf(job_id, calls);
    }
    for (const std::string& participant_id : openings.holders) {
      const auto call = polls_.NewestOf(participant_id);
      if (call.has_value()) calls.insert(*call);
    }
  }
  if (openings.to_optimize > 0) {
    const Adder workers = [this](size_t most, HeldPolls::Calls& to) {
      mutex_.AssertHeld();
      polls_.AddWorkers(most, to);
    };
    AddTakers(openings.to_optimize, workers, now, calls);
  }
  for (const auto& [way, count] : openings.to_measure) {
    const Adder agents = [this, &asked = way](size_t most,
                                              HeldPolls::Calls& to) {
      mutex_.AssertHeld();
      polls_.AddAgents(asked, most, to);
    };
    AddTakers(count, agents, now, calls);
  }
  return Find(calls);
}

absl::Time LongPolls::Run(absl::Time now, bool all) {
  const Polls asked = WorthAsking(Concerned(now, all), now);
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
  absl::Time next = polls_.FirstDeadline();
  if (!all && !polls_.all().empty()) {
    next = std::min(next, asked_all_ + kAskAllEvery);
  }
  next_run_ = std::min(next_run_, next);
  return next;
}

}  // namespace optfarm::server
