// READY tasks in the order of their age, with the place of each.

#ifndef OPTFARM_SERVER_SCHEDULING_TASK_QUEUE_H_
#define OPTFARM_SERVER_SCHEDULING_TASK_QUEUE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace optfarm::server {

// A task by its place in its job. Orders by age: older jobs first.
struct TaskRef {
  int64_t job_number = 0;
  std::string job_id;
  size_t index = 0;

  friend auto operator<=>(const TaskRef&, const TaskRef&) = default;
};

// THREADS: one thread at a time.
class TaskQueue {
 public:
  using Iterator = std::set<TaskRef>::const_iterator;

  // Inserting again, or erasing what is not there, has no effect.
  void Insert(const TaskRef& ref);
  void Erase(const TaskRef& ref);

  bool empty() const { return tasks_.empty(); }
  Iterator begin() const { return tasks_.begin(); }
  Iterator end() const { return tasks_.end(); }

  // How many are older than `ref`, which need not be there. Takes a step for
  // each thousand jobs before it, and for each task of its own thousand.
  size_t CountBefore(const TaskRef& ref) const;

 private:
  std::set<TaskRef> tasks_;
  // How many there are of the jobs of each block of numbers.
  std::map<int64_t, size_t> blocks_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_TASK_QUEUE_H_
