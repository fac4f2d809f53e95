#include "server/scheduling/task_index.h"

#include <algorithm>

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

}  // namespace

void TaskIndex::Add(const LiveJob& job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const storage::TaskRecord& task = job.tasks[i].record;
    const TaskRef ref{job.job.number, job.job.job_id, i};
    if (task.state == v1::READY && task.kind == v1::OPTIMIZE) {
      optimize_.insert(ref);
    } else if (task.state == v1::READY) {
      by_asked_device_[task.device].insert(ref);
    } else if (task.state == v1::LEASED) {
      by_participant_[task.participant_id].insert(ref);
      if (!task.device.empty()) on_device_[task.device].insert(ref);
    }
  }
}

void TaskIndex::Remove(const LiveJob& job) {
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const storage::TaskRecord& task = job.tasks[i].record;
    const TaskRef ref{job.job.number, job.job.job_id, i};
    optimize_.erase(ref);
    Erase(by_asked_device_, task.device, ref);
    Erase(by_participant_, task.participant_id, ref);
    Erase(on_device_, task.device, ref);
  }
}

void TaskIndex::ForEachReady(
    absl::Span<const std::string> ways,
    absl::FunctionRef<bool(const TaskRef&)> look) const {
  struct Queue {
    std::set<TaskRef>::const_iterator next, end;
  };
  std::vector<Queue> queues;
  for (const std::string& way : ways) {
    const std::set<TaskRef>& tasks = Find(by_asked_device_, way);
    if (!tasks.empty()) queues.push_back({tasks.begin(), tasks.end()});
  }
  while (!queues.empty()) {
    const auto oldest = std::min_element(
        queues.begin(), queues.end(),
        [](const Queue& a, const Queue& b) { return *a.next < *b.next; });
    if (!look(*oldest->next)) return;
    if (++oldest->next == oldest->end) queues.erase(oldest);
  }
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
