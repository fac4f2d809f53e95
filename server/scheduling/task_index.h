// Finds tasks of live jobs by what the scheduler asks for, so that a call does
// not look at every job: who holds what, what is ready, which devices are busy.

#ifndef OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_
#define OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "server/scheduling/job_change.h"

namespace optfarm::server {

// A task by its place in its job. Orders by age: older jobs first.
struct TaskRef {
  int64_t job_number = 0;
  std::string job_id;
  size_t index = 0;

  friend auto operator<=>(const TaskRef&, const TaskRef&) = default;
};

// THREADS: one thread at a time.
class TaskIndex {
 public:
  // REQUIRES: the job is not in the index.
  void Add(const LiveJob& job);
  // REQUIRES: `job` is as it was added.
  void Remove(const LiveJob& job);

  // READY optimize tasks, oldest job first; some may have to wait still.
  const std::set<TaskRef>& ReadyToOptimize() const { return optimize_; }
  // Shows READY benchmark tasks that ask in one of these ways (see
  // device_choice.h), oldest job first, until `look` returns false. The index
  // must not change meanwhile.
  void ForEachReady(absl::Span<const std::string> ways,
                    absl::FunctionRef<bool(const TaskRef&)> look) const;
  // LEASED tasks of a participant.
  const std::set<TaskRef>& LeasedBy(const std::string& participant_id) const;
  // The task that the device holds; null when it holds none.
  const TaskRef* LeasedOnDevice(const std::string& device) const;

 private:
  using Sets = absl::flat_hash_map<std::string, std::set<TaskRef>>;

  std::set<TaskRef> optimize_;
  // By what they ask for.
  Sets by_asked_device_;
  Sets by_participant_;
  Sets on_device_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_
