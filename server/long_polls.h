// Synchronize calls that are held because there was nothing to say. When
// something changes, and when their time is up, each is asked of the scheduler
// again and answered if that brings something.

#ifndef OPTFARM_SERVER_LONG_POLLS_H_
#define OPTFARM_SERVER_LONG_POLLS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduler.h"

namespace optfarm::server {

// Sends the answer of a call. Called once, from any thread, without locks held.
using SynchronizeReply =
    std::function<void(const absl::StatusOr<v1::SynchronizeResponse>&)>;

// THREADS: safe.
class LongPolls {
 public:
  // OWNERSHIP: the scheduler outlives the polls. `wake` makes somebody call
  // Run soon; it is called without locks held.
  LongPolls(Scheduler& scheduler, std::function<void()> wake);

  // Serves one call from beginning to end: answers it now or later through
  // `reply`. `call` is from Scheduler::BeginCall.
  void Serve(const v1::SynchronizeRequest& request, int64_t call,
             absl::Time now, SynchronizeReply reply);

  // The caller of a held call went away; it is answered Cancelled.
  void Abandon(int64_t call);

  // Something changed that may be news for held calls.
  void NoteChange();

  // Asks again for every held call, and answers those that have news or whose
  // time is up. Returns when the next one's time is up.
  absl::Time Run(absl::Time now);

 private:
  struct Poll;

  std::shared_ptr<Poll> Take(int64_t call) ABSL_LOCKS_EXCLUDED(mutex_);

  Scheduler& scheduler_;
  const std::function<void()> wake_;
  absl::Mutex mutex_;
  // By number of the call.
  std::map<int64_t, std::shared_ptr<Poll>> polls_ ABSL_GUARDED_BY(mutex_);
  // When Run is expected next.
  absl::Time next_run_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // Counts changes, so that one between asking and holding is not missed.
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_LONG_POLLS_H_
