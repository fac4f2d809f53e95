#include "server/scheduling/task_index.h"

#include <algorithm>

#include "base/check.h"

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

using Queues = std::map<std::string, TaskQueue>;

void Erase(Queues& queues, const std::string& project, const TaskRef& ref) {
  const auto found = queues.find(project);
  if (found == queues.end()) return;
  found->second.Erase(ref);
  if (found->second.empty()) queues.erase(found);
}

// The index finds both where it finds the other.
bool SamePlace(const storage::TaskRecord& a, const storage::TaskRecord& b) {
  return a.state == b.state && a.device == b.device &&
         a.not_before == b.not_before && a.ready_time == b.ready_time &&
         a.participant_id == b.participant_id &&
         a.attempt_start_time == b.attempt_start_time;
}

}  // namespace

TaskIndex::Entry TaskIndex::EntryOf(const LiveJob& job, size_t index) {
  return {TaskRef{job.job.number, job.job.job_id, index}, job.job.project,
          job.tasks[index].record.device, job.spec};
}

void TaskIndex::Add(const LiveJob& job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) Add(job, i);
}

void TaskIndex::Remove(const LiveJob& job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) Remove(job, i);
}

void TaskIndex::Change(const LiveJob& before, const LiveJob& after) {
  OPTFARM_CHECK(before.tasks.size() == after.tasks.size());
  for (size_t i = 0; i < after.tasks.size(); ++i) {
    if (SamePlace(before.tasks[i].record, after.tasks[i].record)) continue;
    Remove(before, i);
    Add(after, i);
  }
}

void TaskIndex::Add(const LiveJob& job, size_t index) {
  const storage::TaskRecord& task = job.tasks[index].record;
  const Entry entry = EntryOf(job, index);
  Tally& tally = tallies_[task.kind];
  if (task.state == v1::READY) {
    ++tally.ready[task.ready_time];
    ++tally.ready_count;
  }
  if (task.state == v1::READY && task.not_before > absl::InfinitePast()) {
    waiting_.emplace(std::pair(task.not_before, entry.ref), entry);
  } else if (task.state == v1::READY) {
    Enqueue(entry);
  } else if (task.state == v1::LEASED) {
    by_participant_[task.participant_id].insert(entry.ref);
    if (!task.device.empty()) on_device_[task.device].insert(entry.ref);
    Share& share =
        (task.kind == v1::OPTIMIZE ? workers_ : devices_)[entry.project];
    ++share.leased;
    share.last_turn = std::max(share.last_turn, task.attempt_start_time);
    ++tally.leased;
  }
}

void TaskIndex::Remove(const LiveJob& job, size_t index) {
  const storage::TaskRecord& task = job.tasks[index].record;
  const Entry entry = EntryOf(job, index);
  Tally& tally = tallies_[task.kind];
  if (task.state == v1::READY) {
    --tally.ready_count;
    const auto since = tally.ready.find(task.ready_time);
    if (--since->second == 0) tally.ready.erase(since);
    if (waiting_.erase({task.not_before, entry.ref}) == 0) Dequeue(entry);
  } else if (task.state == v1::LEASED) {
    Erase(by_participant_, task.participant_id, entry.ref);
    Erase(on_device_, task.device, entry.ref);
    --(task.kind == v1::OPTIMIZE ? workers_ : devices_)[entry.project].leased;
    --tally.leased;
  }
}

void TaskIndex::Enqueue(const Entry& entry) {
  if (entry.device.empty()) {
    optimize_[entry.project].Insert(entry.ref);
    return;
  }
  Asking& asking = by_asked_device_[entry.device];
  asking.all[entry.project].Insert(entry.ref);
  for (const std::string& tag : entry.spec->tags()) {
    asking.by_tag[tag][entry.project].Insert(entry.ref);
  }
}

void TaskIndex::Dequeue(const Entry& entry) {
  if (entry.device.empty()) return Erase(optimize_, entry.project, entry.ref);
  const auto asked = by_asked_device_.find(entry.device);
  if (asked == by_asked_device_.end()) return;
  Asking& asking = asked->second;
  Erase(asking.all, entry.project, entry.ref);
  for (const std::string& tag : entry.spec->tags()) {
    const auto tagged = asking.by_tag.find(tag);
    // None: the job bears the tag twice.
    if (tagged == asking.by_tag.end()) continue;
    Erase(tagged->second, entry.project, entry.ref);
    if (tagged->second.empty()) asking.by_tag.erase(tagged);
  }
  if (asking.all.empty()) by_asked_device_.erase(asked);
}

void TaskIndex::EndWaits(absl::Time now) {
  while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
    Enqueue(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
}

void TaskIndex::InTurn(absl::Span<const Queues* const> queues,
                       const Shares& shares, Given& given, Looker look) {
  struct Line {
    const std::string* project;
    Share share;
    TaskQueue::Iterator next, end;
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
    ++looks_;
    if (came_to == Look::kTaken || came_to == Look::kTakenAndStop) {
      ++given[*first->project];
    }
    if (came_to == Look::kStop || came_to == Look::kTakenAndStop) return;
    if (++first->next == first->end) lines.erase(first);
  }
}

void TaskIndex::ForEachToOptimize(Given& given, Looker look) {
  const Queues* const queues[] = {&optimize_};
  InTurn(queues, workers_, given, look);
}

void TaskIndex::ForEachToMeasure(absl::Span<const std::string> ways,
                                 const std::optional<std::string>& tag,
                                 Given& given, Looker look) {
  std::vector<const Queues*> queues;
  for (const std::string& way : ways) {
    const auto asked = by_asked_device_.find(way);
    if (asked == by_asked_device_.end()) continue;
    if (!tag.has_value()) {
      queues.push_back(&asked->second.all);
      continue;
    }
    const auto tagged = asked->second.by_tag.find(*tag);
    if (tagged != asked->second.by_tag.end()) queues.push_back(&tagged->second);
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
    queues = &asked->second.all;
  }
  const auto own = queues->find(project);
  if (own == queues->end()) return {};
  Place place;
  place.before = own->second.CountBefore(ref);
  place.other_projects = queues->size() - 1;
  return place;
}

TaskIndex::Numbers TaskIndex::NumbersOf(v1::TaskKind kind) const {
  const auto tally = tallies_.find(kind);
  if (tally == tallies_.end()) return {};
  Numbers numbers{tally->second.ready_count, tally->second.leased};
  if (!tally->second.ready.empty()) {
    numbers.oldest = tally->second.ready.begin()->first;
  }
  return numbers;
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
