// Synchronize calls that are held because there was nothing to say. When
// something changes, and when their time is up, each is asked of the scheduler
// again and answered if that brings something.

#ifndef OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_
#define OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/scheduler.h"

namespace optfarm::server {

// Sends the answer of a call. Called once, from any thread, without locks held.
using SynchronizeReply =
    std::function<void(const absl::StatusOr<v1::SynchronizeResponse>&)>;

// A call to be served.
struct IncomingCall {
  // OWNERSHIP: lives until the call is answered.
  const v1::SynchronizeRequest* request = nullptr;
  // From Scheduler::BeginCall.
  int64_t number = 0;
  absl::Time time;
  SynchronizeReply reply;
  // The caller has gone away; shared with who learns of it.
  std::shared_ptr<const std::atomic<bool>> hung_up = nullptr;
};

// THREADS: safe.
class LongPolls {
 public:
  // OWNERSHIP: the scheduler outlives the polls. `wake` makes somebody call
  // Run soon; it is called without locks held.
  LongPolls(Scheduler& scheduler, std::function<void()> wake);

  // Serves calls from beginning to end: answers each now or later. What they
  // bring is made durable together.
  void Serve(std::vector<IncomingCall> calls);

  // The caller of a held call went away; it is answered Cancelled.
  void Abandon(int64_t call);

  // Something changed that may be news for held calls.
  void NoteChange();

  // Answers the held calls that have news or whose time is up. Returns when the
  // next one's time is up.
  absl::Time Run(absl::Time now);

 private:
  struct Poll;

  // Takes a held call out, so that nobody else answers it; null when it is not
  // held.
  std::shared_ptr<Poll> Take(int64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers held calls whose participants call again.
  void AnswerReplaced(const std::vector<IncomingCall>& calls)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps calls for later that have no news.
  void Hold(std::vector<std::shared_ptr<Poll>> polls, int64_t changes_before)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of `held` that Run has to ask the scheduler for.
  std::vector<std::shared_ptr<Poll>> WorthAsking(
      std::vector<std::shared_ptr<Poll>> held, absl::Time now);

  Scheduler& scheduler_;
  const std::function<void()> wake_;
  absl::Mutex mutex_;
  // By number of the call.
  std::map<int64_t, std::shared_ptr<Poll>> polls_ ABSL_GUARDED_BY(mutex_);
  // The newest held call of a participant.
  absl::flat_hash_map<std::string, int64_t> by_participant_
      ABSL_GUARDED_BY(mutex_);
  // When Run is expected next.
  absl::Time next_run_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // Counts changes, so that one between asking and holding is not missed.
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_
