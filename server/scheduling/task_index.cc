#include "server/scheduling/task_index.h"

#include <algorithm>
#include <iterator>

namespace optfarm::server {
namespace {

using Sets = absl::flat_hash_map<std::string, std::set<TaskRef>>;

const std::set<TaskRef>& Find(const Sets& sets, const std::string& key) {
  static const std::set<TaskRef>* const kNone = new std::set<TaskRef>;
  const auto found = sets.find(key);
  return found == sets.end() ? *kNone : found->second;
}

void Erase(Sets& sets, const std::string& key, const TaskRef& ref) {
  const auto found = sets.find(key);
  if (found == sets.end()) return;
  found->second.erase(ref);
  if (found->second.empty()) sets.erase(found);
}

using Queues = std::map<std::string, std::set<TaskRef>>;

void Erase(Queues& queues, const std::string& project, const TaskRef& ref) {
  const auto found = queues.find(project);
  if (found == queues.end()) return;
  found->second.erase(ref);
  if (found->second.empty()) queues.erase(found);
}

}  // namespace

void TaskIndex::Add(const LiveJob& job) {
  const std::string& project = job.job.project;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const storage::TaskRecord& task = job.tasks[i].record;
    const TaskRef ref{job.job.number, job.job.job_id, i};
    const bool optimize = task.kind == v1::OPTIMIZE;
    if (task.state == v1::READY && optimize) {
      optimize_[project].insert(ref);
    } else if (task.state == v1::READY) {
      by_asked_device_[task.device][project].insert(ref);
    } else if (task.state == v1::LEASED) {
      by_participant_[task.participant_id].insert(ref);
      if (!task.device.empty()) on_device_[task.device].insert(ref);
      Share& share = (optimize ? workers_ : devices_)[project];
      ++share.leased;
      share.last_turn = std::max(share.last_turn, task.attempt_start_time);
    }
  }
}

void TaskIndex::Remove(const LiveJob& job) {
  const std::string& project = job.job.project;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const storage::TaskRecord& task = job.tasks[i].record;
    const TaskRef ref{job.job.number, job.job.job_id, i};
    Erase(optimize_, project, ref);
    const auto asked = by_asked_device_.find(task.device);
    if (asked != by_asked_device_.end()) {
      Erase(asked->second, project, ref);
      if (asked->second.empty()) by_asked_device_.erase(asked);
    }
    Erase(by_participant_, task.participant_id, ref);
    Erase(on_device_, task.device, ref);
    if (task.state == v1::LEASED) {
      --(task.kind == v1::OPTIMIZE ? workers_ : devices_)[project].leased;
    }
  }
}

void TaskIndex::InTurn(absl::Span<const Queues* const> queues,
                       const Shares& shares, Given& given, Looker look) {
  struct Line {
    const std::string* project;
    Share share;
    std::set<TaskRef>::const_iterator next, end;
  };
  std::vector<Line> lines;
  for (const Queues* const each : queues) {
    for (const auto& [project, tasks] : *each) {
      const auto share = shares.find(project);
      lines.push_back({&project,
                       share == shares.end() ? Share() : share->second,
                       tasks.begin(), tasks.end()});
    }
  }
  const auto leased = [&](const Line& line) {
    const auto more = given.find(*line.project);
    return line.share.leased + (more == given.end() ? 0 : more->second);
  };
  const auto earlier = [&](const Line& a, const Line& b) {
    const int of_a = leased(a);
    const int of_b = leased(b);
    if (of_a != of_b) return of_a < of_b;
    if (a.share.last_turn != b.share.last_turn) {
      return a.share.last_turn < b.share.last_turn;
    }
    return *a.next < *b.next;
  };
  while (!lines.empty()) {
    const auto first = std::min_element(lines.begin(), lines.end(), earlier);
    const Look came_to = look(*first->next);
    if (came_to == Look::kTaken || came_to == Look::kTakenAndStop) {
      ++given[*first->project];
    }
    if (came_to == Look::kStop || came_to == Look::kTakenAndStop) return;
    if (++first->next == first->end) lines.erase(first);
  }
}

void TaskIndex::ForEachToOptimize(Given& given, Looker look) const {
  const Queues* const queues[] = {&optimize_};
  InTurn(queues, workers_, given, look);
}

void TaskIndex::ForEachToMeasure(absl::Span<const std::string> ways,
                                 Given& given, Looker look) const {
  std::vector<const Queues*> queues;
  for (const std::string& way : ways) {
    const auto asked = by_asked_device_.find(way);
    if (asked != by_asked_device_.end()) queues.push_back(&asked->second);
  }
  InTurn(queues, devices_, given, look);
}

TaskIndex::Place TaskIndex::PlaceOf(const std::string& project,
                                    const TaskRef& ref,
                                    const storage::TaskRecord& task) const {
  const Queues* queues = &optimize_;
  if (task.kind != v1::OPTIMIZE) {
    const auto asked = by_asked_device_.find(task.device);
    if (asked == by_asked_device_.end()) return {};
    queues = &asked->second;
  }
  const auto own = queues->find(project);
  if (own == queues->end()) return {};
  Place place;
  place.before = static_cast<size_t>(
      std::distance(own->second.begin(), own->second.lower_bound(ref)));
  place.other_projects = queues->size() - 1;
  return place;
}

const std::set<TaskRef>& TaskIndex::LeasedBy(
    const std::string& participant_id) const {
  return Find(by_participant_, participant_id);
}

const TaskRef* TaskIndex::LeasedOnDevice(const std::string& device) const {
  const std::set<TaskRef>& tasks = Find(on_device_, device);
  return tasks.empty() ? nullptr : &*tasks.begin();
}

}  // namespace optfarm::server
