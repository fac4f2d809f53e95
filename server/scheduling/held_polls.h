// The Synchronize calls that are held, found by what may end their wait: the
// jobs whose tasks they hold, the work that they could take, and their time. So
// a change costs what it changes, however many agents wait.

#ifndef OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_
#define OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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
  // It is answered then, whatever there is to say.
  absl::Time deadline;
  // It is looked at then, if nothing comes before; no later than the deadline.
  absl::Time next_look;
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
  size_t size() const { return polls_.size(); }

  // When the next one is to be looked at.
  absl::Time FirstLook() const;
  // Adds to `calls` those that are to be looked at by `until`, and has them
  // looked at again at `again`, or at their deadlines if those are sooner.
  void TakeLooks(absl::Time until, absl::Time again, Calls& calls);
  // Adds those that hold a task of the job.
  void AddHoldersOf(const std::string& job_id, Calls& calls) const;
  // Up to `most` workers that want work, the longest waiting first, of those
  // that came after the call `after`.
  std::vector<int64_t> Workers(int64_t after, size_t most) const;
  // The same of agents with a ready device that is asked for so (see
  // device_choice.h).
  std::vector<int64_t> Agents(const std::string& way, int64_t after,
                              size_t most) const;

 private:
  using Index = absl::flat_hash_map<std::string, Calls>;

  absl::flat_hash_map<int64_t, std::shared_ptr<HeldPoll>> polls_;
  absl::flat_hash_map<std::string, int64_t> by_participant_;
  std::set<std::pair<absl::Time, int64_t>> by_next_look_;
  Calls workers_;
  Index by_way_;
  Index by_job_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_HELD_POLLS_H_
