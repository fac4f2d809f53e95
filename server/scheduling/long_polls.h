// Synchronize calls that are held because there was nothing to say. When jobs
// change, those whom it concerns are asked of the scheduler again, as many as
// there is work for, and answered if that brings something; so are those whose
// time is up. What no job's change tells (a device that an operator frees, a
// pause that ends) is found by asking all, at most every second.

#ifndef OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_
#define OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "optfarm/v1/work.pb.h"
#include "server/scheduling/held_polls.h"
#include "server/scheduling/scheduler.h"

namespace optfarm::server {

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

  // These jobs changed, which may be news for held calls; none: something else
  // that may be.
  void NoteChange(const std::vector<std::string>& job_ids);

  // Answers the held calls that have news or whose time is up; with `all`,
  // whoever they are. Returns when it is to be called again.
  absl::Time Run(absl::Time now, bool all = false);

 private:
  using Poll = HeldPoll;
  using Polls = std::vector<std::shared_ptr<Poll>>;
  // Adds up to so many calls to a set.
  using Adder = std::function<void(size_t most, HeldPolls::Calls& calls)>;

  // Takes a held call out, so that nobody else answers it; null when it is not
  // held.
  std::shared_ptr<Poll> Take(int64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers held calls whose participants call again.
  void AnswerReplaced(const std::vector<IncomingCall>& calls)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps calls for later that have no news.
  void Hold(Polls polls, int64_t changes_before) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whom Run has to look at.
  Polls Concerned(absl::Time now, bool& all) ABSL_LOCKS_EXCLUDED(mutex_);
  // The first `count` of those that `add` knows who would get work.
  void AddTakers(size_t count, const Adder& add, absl::Time now,
                 HeldPolls::Calls& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  Polls Find(const HeldPolls::Calls& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of `held` that Run has to ask the scheduler for.
  Polls WorthAsking(Polls held, absl::Time now);

  Scheduler& scheduler_;
  const std::function<void()> wake_;
  absl::Mutex mutex_;
  HeldPolls polls_ ABSL_GUARDED_BY(mutex_);
  // Jobs that changed since Run looked, and calls that came meanwhile.
  std::set<std::string> changed_ ABSL_GUARDED_BY(mutex_);
  HeldPolls::Calls missed_ ABSL_GUARDED_BY(mutex_);
  bool ask_all_ ABSL_GUARDED_BY(mutex_) = false;
  // When all were asked.
  absl::Time asked_all_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // When Run is expected next.
  absl::Time next_run_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // Counts changes, so that one between asking and holding is not missed.
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_
