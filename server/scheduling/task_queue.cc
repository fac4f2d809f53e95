#include "server/scheduling/task_queue.h"

#include <iterator>

namespace optfarm::server {
namespace {

constexpr int64_t kJobsOfABlock = 1024;

int64_t BlockOf(const TaskRef& ref) { return ref.job_number / kJobsOfABlock; }

}  // namespace

void TaskQueue::Insert(const TaskRef& ref) {
  if (tasks_.insert(ref).second) ++blocks_[BlockOf(ref)];
}

void TaskQueue::Erase(const TaskRef& ref) {
  if (tasks_.erase(ref) == 0) return;
  const auto block = blocks_.find(BlockOf(ref));
  if (--block->second == 0) blocks_.erase(block);
}

size_t TaskQueue::CountBefore(const TaskRef& ref) const {
  size_t count = 0;
  for (const auto& [block, tasks] : blocks_) {
    if (block >= BlockOf(ref)) break;
    count += tasks;
  }
  const auto first =
      tasks_.lower_bound({BlockOf(ref) * kJobsOfABlock, std::string(), 0});
  return count +
         static_cast<size_t>(std::distance(first, tasks_.lower_bound(ref)));
}

}  // namespace optfarm::server
