// Finds tasks of live jobs by what the scheduler asks for, so that a call does
// not look at every job: who holds what, what is ready, which devices are busy.
//
// Projects take turns: next comes the one that holds the fewest workers (or
// devices), of those the one that has waited longest for its last turn, and
// within a project the oldest job. So a project with ten thousand jobs delays
// another one's first job by the tasks that run, not by those that wait.
//
// A task that waits for another attempt is in no queue until its time has come,
// so that nobody who asks for work looks at it.

#ifndef OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_
#define OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/scheduling/job_change.h"
#include "server/scheduling/task_queue.h"

namespace optfarm::server {

// THREADS: one thread at a time.
class TaskIndex {
 public:
  // REQUIRES: the job is not in the index.
  void Add(const LiveJob& job);
  // REQUIRES: `job` is as it was added.
  void Remove(const LiveJob& job);
  // One job as it was added, and as it is now.
  void Change(const LiveJob& before, const LiveJob& after);

  // Puts the tasks whose wait for another attempt is over into their queues.
  void EndWaits(absl::Time now);

  // What a look at a task came to.
  enum class Look { kGoOn, kTaken, kTakenAndStop, kStop };
  using Looker = absl::FunctionRef<Look(const TaskRef&)>;
  // Tasks that projects were given and that the index does not know of yet.
  using Given = std::map<std::string, int>;

  // Shows the optimize tasks that may be leased in the order in which they are
  // due, until `look` stops. Counts what is taken in `given`. The index must
  // not change meanwhile.
  void ForEachToOptimize(Given& given, Looker look);
  // The same for benchmark tasks that ask in one of these ways (see
  // device_choice.h); with a tag, for those alone whose jobs bear it.
  void ForEachToMeasure(absl::Span<const std::string> ways,
                        const std::optional<std::string>& tag, Given& given,
                        Looker look);
  // How many tasks have been shown since the start.
  int64_t looks() const { return looks_; }

  // How many tasks of its project are before one that may be leased, and how
  // many other projects want what it waits for.
  struct Place {
    size_t before = 0;
    size_t other_projects = 0;
  };
  Place PlaceOf(const std::string& project, const TaskRef& ref,
                const storage::TaskRecord& task) const;
  // Of all tasks of a kind.
  struct Numbers {
    int ready = 0;
    int leased = 0;
    // When the READY task that waits longest became READY.
    absl::Time oldest = absl::InfiniteFuture();
  };
  Numbers NumbersOf(v1::TaskKind kind) const;
  // LEASED tasks of a participant.
  const std::set<TaskRef>& LeasedBy(const std::string& participant_id) const;
  // The task that the device holds; null when it holds none.
  const TaskRef* LeasedOnDevice(const std::string& device) const;

 private:
  using Sets = absl::flat_hash_map<std::string, std::set<TaskRef>>;
  // By project.
  using Queues = std::map<std::string, TaskQueue>;
  // What a project has of workers, or of devices.
  struct Share {
    int leased = 0;
    absl::Time last_turn = absl::InfinitePast();
  };
  using Shares = std::map<std::string, Share>;
  // Those that ask for devices in one way.
  struct Asking {
    Queues all;
    // By the tags of their jobs.
    absl::flat_hash_map<std::string, Queues> by_tag;
  };
  // A READY task's place in the queues.
  struct Entry {
    TaskRef ref;
    std::string project;
    // None: a worker.
    std::string device;
    std::shared_ptr<const v1::JobSpec> spec;
  };

  // Tasks of one kind.
  struct Tally {
    int leased = 0;
    // When those that are READY became so, and how many did then.
    std::map<absl::Time, int> ready;
    int ready_count = 0;
  };

  static Entry EntryOf(const LiveJob& job, size_t index);
  void Add(const LiveJob& job, size_t index);
  void Remove(const LiveJob& job, size_t index);
  void Enqueue(const Entry& entry);
  void Dequeue(const Entry& entry);
  void InTurn(absl::Span<const Queues* const> queues, const Shares& shares,
              Given& given, Looker look);

  Queues optimize_;
  // By what they ask for.
  absl::flat_hash_map<std::string, Asking> by_asked_device_;
  // By the time at which they may be tried again.
  std::map<std::pair<absl::Time, TaskRef>, Entry> waiting_;
  // By project.
  Shares workers_;
  Shares devices_;
  Sets by_participant_;
  Sets on_device_;
  std::map<v1::TaskKind, Tally> tallies_;
  int64_t looks_ = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_TASK_INDEX_H_
