#include "server/scheduling/held_polls.h"

#include <algorithm>

#include "server/scheduling/device_choice.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

using Calls = HeldPolls::Calls;

std::vector<int64_t> After(const Calls& calls, int64_t after, size_t most) {
  std::vector<int64_t> some;
  for (auto call = calls.upper_bound(after);
       call != calls.end() && some.size() < most; ++call) {
    some.push_back(*call);
  }
  return some;
}

bool IsWorker(const v1::SynchronizeRequest& request) {
  return request.kind() == v1::SynchronizeRequest::WORKER;
}

// The ways to ask for the ready devices of an agent.
std::vector<std::string> WaysOf(const v1::SynchronizeRequest& request) {
  std::vector<std::string> ways;
  if (IsWorker(request)) return ways;
  for (const v1::DeviceStatus& status : request.devices()) {
    if (!status.ready() || status.disabled()) continue;
    for (std::string& way : WaysToAskFor(status.info())) {
      ways.push_back(std::move(way));
    }
  }
  return ways;
}

std::vector<std::string> JobsOf(const v1::SynchronizeRequest& request) {
  std::vector<std::string> jobs;
  for (const v1::HeldTask& held : request.held()) {
    jobs.emplace_back(JobIdOfTask(held.task_id()));
  }
  return jobs;
}

template <typename Index>
void Put(Index& index, const std::vector<std::string>& keys, int64_t call) {
  for (const std::string& key : keys) index[key].insert(call);
}

template <typename Index>
void Remove(Index& index, const std::vector<std::string>& keys, int64_t call) {
  for (const std::string& key : keys) {
    const auto found = index.find(key);
    if (found == index.end()) continue;
    found->second.erase(call);
    if (found->second.empty()) index.erase(found);
  }
}

}  // namespace

void HeldPolls::Add(std::shared_ptr<HeldPoll> poll) {
  const v1::SynchronizeRequest& request = poll->request;
  const int64_t call = poll->call;
  int64_t& newest = by_participant_[request.participant_id()];
  newest = std::max(newest, call);
  by_next_look_.emplace(poll->next_look, call);
  if (IsWorker(request) && request.free_slots() > 0) workers_.insert(call);
  Put(by_way_, WaysOf(request), call);
  Put(by_job_, JobsOf(request), call);
  polls_[call] = std::move(poll);
}

std::shared_ptr<HeldPoll> HeldPolls::Take(int64_t call) {
  const auto found = polls_.find(call);
  if (found == polls_.end()) return nullptr;
  std::shared_ptr<HeldPoll> poll = std::move(found->second);
  polls_.erase(found);
  const auto newest = by_participant_.find(poll->request.participant_id());
  if (newest != by_participant_.end() && newest->second == call) {
    by_participant_.erase(newest);
  }
  by_next_look_.erase({poll->next_look, call});
  workers_.erase(call);
  Remove(by_way_, WaysOf(poll->request), call);
  Remove(by_job_, JobsOf(poll->request), call);
  return poll;
}

std::shared_ptr<HeldPoll> HeldPolls::Find(int64_t call) const {
  const auto found = polls_.find(call);
  return found == polls_.end() ? nullptr : found->second;
}

std::optional<int64_t> HeldPolls::NewestOf(
    const std::string& participant_id) const {
  const auto found = by_participant_.find(participant_id);
  if (found == by_participant_.end()) return std::nullopt;
  return found->second;
}

absl::Time HeldPolls::FirstLook() const {
  return by_next_look_.empty() ? absl::InfiniteFuture()
                               : by_next_look_.begin()->first;
}

void HeldPolls::TakeLooks(absl::Time until, absl::Time again, Calls& calls) {
  std::vector<int64_t> taken;
  for (auto next = by_next_look_.begin();
       next != by_next_look_.end() && next->first <= until;) {
    taken.push_back(next->second);
    next = by_next_look_.erase(next);
  }
  for (const int64_t call : taken) {
    HeldPoll& poll = *polls_.at(call);
    poll.next_look = std::min(again, poll.deadline);
    by_next_look_.emplace(poll.next_look, call);
  }
  calls.insert(taken.begin(), taken.end());
}

void HeldPolls::AddHoldersOf(const std::string& job_id, Calls& calls) const {
  const auto found = by_job_.find(job_id);
  if (found == by_job_.end()) return;
  calls.insert(found->second.begin(), found->second.end());
}

std::vector<int64_t> HeldPolls::Workers(int64_t after, size_t most) const {
  return After(workers_, after, most);
}

std::vector<int64_t> HeldPolls::Agents(const std::string& way, int64_t after,
                                       size_t most) const {
  const auto found = by_way_.find(way);
  return found == by_way_.end() ? std::vector<int64_t>()
                                : After(found->second, after, most);
}

}  // namespace optfarm::server
