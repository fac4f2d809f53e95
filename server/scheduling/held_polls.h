// The Synchronize calls that are held, found by what may end their wait: the
// jobs whose tasks they hold, the work that they could take, and their time. So
// a change costs what it changes, however many agents wait.

#ifndef OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_
#define OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"

namespace optfarm::server {

// Sends the answer of a call. Called once, from any thread, without locks held.
using SynchronizeReply =
    std::function<void(const absl::StatusOr<v1::SynchronizeResponse>&)>;

struct HeldPoll {
  v1::SynchronizeRequest request;
  // From Scheduler::BeginCall.
  int64_t call = 0;
  absl::Time deadline;
  SynchronizeReply reply;
  std::shared_ptr<const std::atomic<bool>> hung_up = nullptr;
};

// THREADS: one thread at a time.
class HeldPolls {
 public:
  using Calls = std::set<int64_t>;

  void Add(std::shared_ptr<HeldPoll> poll);
  // Null when it is not held.
  std::shared_ptr<HeldPoll> Take(int64_t call);
  std::shared_ptr<HeldPoll> Find(int64_t call) const;
  // The newest call of a participant.
  std::optional<int64_t> NewestOf(const std::string& participant_id) const;
  const std::map<int64_t, std::shared_ptr<HeldPoll>>& all() const {
    return polls_;
  }

  // When the time of the next one is up.
  absl::Time FirstDeadline() const;
  // Adds to `calls` those whose time is up.
  void AddPassed(absl::Time now, Calls& calls) const;
  // Adds those that hold a task of the job.
  void AddHoldersOf(const std::string& job_id, Calls& calls) const;
  // Adds up to `most` workers that want work, the longest waiting first.
  void AddWorkers(size_t most, Calls& calls) const;
  // The same of agents with a ready device that is asked for so (see
  // device_choice.h).
  void AddAgents(const std::string& way, size_t most, Calls& calls) const;

 private:
  using Index = absl::flat_hash_map<std::string, Calls>;

  std::map<int64_t, std::shared_ptr<HeldPoll>> polls_;
  absl::flat_hash_map<std::string, int64_t> by_participant_;
  std::set<std::pair<absl::Time, int64_t>> by_deadline_;
  Calls workers_;
  Index by_way_;
  Index by_job_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_
