#include "server/scheduling/long_polls.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"

namespace optfarm::server {

namespace {

// Of those who could take a piece of work, as many are looked at for each:
// where most of a pool may not work now, a change costs no more than that.
constexpr size_t kMostLooksEach = 256;
// Asked about at once, so that nobody waits long for the scheduler.
constexpr size_t kMostTogether = 256;

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
  int64_t news_before;
  {
    absl::MutexLock lock(&mutex_);
    news_before = news_count_;
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
      poll.next_look =
          std::min(poll.deadline, call.time + scheduler_.presence_interval());
      poll.reply = std::move(call.reply);
      poll.hung_up = std::move(call.hung_up);
    }
  }
  if (!held.empty()) Hold(std::move(held), news_before);
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

void LongPolls::Hold(Polls polls, int64_t news_before) {
  bool wake;
  {
    absl::MutexLock lock(&mutex_);
    // Somebody has to know of news that came meanwhile.
    const bool missed = news_count_ != news_before;
    wake = missed;
    for (const std::shared_ptr<Poll>& poll : polls) {
      wake |= poll->next_look < next_run_;
      next_run_ = std::min(next_run_, poll->next_look);
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

void LongPolls::NoteNews(const SchedulerNews& news) {
  {
    absl::MutexLock lock(&mutex_);
    ++news_count_;
    news_.jobs.insert(news.changed_jobs.begin(), news.changed_jobs.end());
    news_.jobs.insert(news.ready_jobs.begin(), news.ready_jobs.end());
    news_.devices.insert(news.free_devices.begin(), news.free_devices.end());
  }
  wake_();
}

LongPolls::Counts LongPolls::counts() {
  absl::MutexLock lock(&mutex_);
  return {polls_.size(), looks_};
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
  Polls worth;
  for (size_t begin = 0; begin < held.size(); begin += kMostTogether) {
    const size_t end = std::min(held.size(), begin + kMostTogether);
    std::vector<const v1::SynchronizeRequest*> requests;
    for (size_t i = begin; i < end; ++i) requests.push_back(&held[i]->request);
    const std::vector<bool> news = scheduler_.MayHaveNews(requests, now);
    for (size_t i = begin; i < end; ++i) {
      if (news[i - begin] || now >= held[i]->deadline) {
        worth.push_back(std::move(held[i]));
      }
    }
  }
  absl::MutexLock lock(&mutex_);
  looks_ += static_cast<int64_t>(held.size());
  return worth;
}

bool LongPolls::AddTakers(size_t count, const Candidates& candidates,
                          absl::Time now, HeldPolls::Calls& calls) {
  size_t taken = 0;
  size_t looks = count * kMostLooksEach;
  int64_t after = -1;
  // Some may not be given work now: then those behind them are looked at.
  for (size_t most = count; taken < count && looks > 0; most *= 2) {
    most = std::min(most, looks);
    const std::vector<int64_t> next = candidates(after, most);
    for (const auto& taker :
         WorthAsking(Find({next.begin(), next.end()}), now)) {
      if (taken == count) break;
      calls.insert(taker->call);
      ++taken;
    }
    if (next.size() < most) break;
    after = next.back();
    looks -= most;
  }
  return taken > 0;
}

bool LongPolls::AddTakers(const Scheduler::Openings& openings, absl::Time now,
                          HeldPolls::Calls& calls) {
  bool any = false;
  if (openings.to_optimize > 0) {
    const Candidates workers = [this](int64_t after, size_t most) {
      absl::MutexLock lock(&mutex_);
      return polls_.Workers(after, most);
    };
    any |= AddTakers(openings.to_optimize, workers, now, calls);
  }
  for (const auto& [way, count] : openings.to_measure) {
    const Candidates agents = [this, &asked = way](int64_t after, size_t most) {
      absl::MutexLock lock(&mutex_);
      return polls_.Agents(asked, after, most);
    };
    any |= AddTakers(count, agents, now, calls);
  }
  return any;
}

LongPolls::News LongPolls::TakeNews(absl::Time now, bool all,
                                    HeldPolls::Calls& calls) {
  absl::MutexLock lock(&mutex_);
  // A call that comes meanwhile is not among these.
  next_run_ = absl::InfiniteFuture();
  calls = std::exchange(missed_, {});
  // A clock that was set back puts nothing off.
  all |= now < std::exchange(last_run_, now);
  polls_.TakeLooks(all ? absl::InfiniteFuture() : now,
                   now + scheduler_.presence_interval(), calls);
  return std::exchange(news_, {});
}

void LongPolls::AddConcerned(const News& news,
                             const Scheduler::Openings& openings,
                             HeldPolls::Calls& calls) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& job_id : news.jobs) {
    polls_.AddHoldersOf(job_id, calls);
  }
  for (const std::string& participant_id : openings.holders) {
    const auto call = polls_.NewestOf(participant_id);
    if (call.has_value()) calls.insert(*call);
  }
  for (const std::string& device : news.devices) {
    // One, unless two agents bring the device.
    const std::vector<int64_t> agents =
        polls_.Agents(device, -1, kMostLooksEach);
    calls.insert(agents.begin(), agents.end());
  }
}

bool LongPolls::Answer(const HeldPolls::Calls& calls, absl::Time now) {
  const Polls asked = WorthAsking(Find(calls), now);
  std::vector<NumberedCall> numbered;
  for (const auto& poll : asked) {
    numbered.push_back({&poll->request, poll->call});
  }
  const auto results = scheduler_.Synchronize(numbered, now);
  bool kept = true;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto& result = results[i];
    kept &= result.ok() || absl::IsAborted(result.status());
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
  return kept;
}

absl::Time LongPolls::Run(absl::Time now, bool all) {
  HeldPolls::Calls calls;
  News news = TakeNews(now, all, calls);
  const Scheduler::Openings openings = scheduler_.OpeningsOf(
      std::vector<std::string>(news.jobs.begin(), news.jobs.end()), now);
  AddConcerned(news, openings, calls);
  const bool takers = AddTakers(openings, now, calls);
  const bool kept = Answer(calls, now);
  absl::MutexLock lock(&mutex_);
  absl::Time next = polls_.FirstLook();
  const bool some_gone = absl::c_any_of(
      calls, [&](int64_t call) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return polls_.Find(call) == nullptr;
      });
  if (takers && kept && some_gone) {
    // They may have taken other work than the one that they were found for, or
    // have gone away.
    news_.jobs.merge(news.jobs);
    next = now;
  }
  next_run_ = std::min(next_run_, next);
  return next;
}

}  // namespace optfarm::server
