#include "server/scheduling/held_polls.h"

#include <algorithm>

#include "server/scheduling/device_choice.h"
#include "server/scheduling/scheduling_policy.h"

namespace optfarm::server {
namespace {

using Calls = HeldPolls::Calls;

void AddFirst(const Calls& from, size_t most, Calls& to) {
  for (const int64_t call : from) {
    if (most-- == 0) return;
    to.insert(call);
  }
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
  by_deadline_.emplace(poll->deadline, call);
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
  by_deadline_.erase({poll->deadline, call});
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

absl::Time HeldPolls::FirstDeadline() const {
  return by_deadline_.empty() ? absl::InfiniteFuture()
                              : by_deadline_.begin()->first;
}

void HeldPolls::AddPassed(absl::Time now, Calls& calls) const {
  for (const auto& [deadline, call] : by_deadline_) {
    if (deadline > now) return;
    calls.insert(call);
  }
}

void HeldPolls::AddHoldersOf(const std::string& job_id, Calls& calls) const {
  const auto found = by_job_.find(job_id);
  if (found == by_job_.end()) return;
  calls.insert(found->second.begin(), found->second.end());
}

void HeldPolls::AddWorkers(size_t most, Calls& calls) const {
  AddFirst(workers_, most, calls);
}

void HeldPolls::AddAgents(const std::string& way, size_t most,
                          Calls& calls) const {
  const auto found = by_way_.find(way);
  if (found != by_way_.end()) AddFirst(found->second, most, calls);
}

}  // namespace optfarm::server
