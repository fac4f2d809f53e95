// Synchronize calls that are held because there was nothing to say. When there
// is news, those whom it concerns are asked of the scheduler again, as many as
// there is work for, and answered if that brings something; so are those whose
// time is up. Each is looked at every now and then besides, so that its caller
// is known to be there. So a change costs what it changes, however many wait.

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

  // There is news, which may be some for held calls.
  void NoteNews(const SchedulerNews& news);

  // Answers the held calls that have news or whose time is up; with `all`,
  // whoever they are. Returns when it is to be called again.
  absl::Time Run(absl::Time now, bool all = false);

  struct Counts {
    // Calls that are held now.
    size_t held = 0;
    // How often the scheduler was asked about held calls since the start.
    int64_t looks = 0;
  };
  Counts counts();

 private:
  using Poll = HeldPoll;
  using Polls = std::vector<std::shared_ptr<Poll>>;
  // Up to so many calls that came after one.
  using Candidates = std::function<std::vector<int64_t>(int64_t after, size_t)>;
  // News that Run has not looked at yet.
  struct News {
    std::set<std::string> jobs;
    std::set<std::string> devices;
  };

  // Takes a held call out, so that nobody else answers it; null when it is not
  // held.
  std::shared_ptr<Poll> Take(int64_t call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers held calls whose participants call again.
  void AnswerReplaced(const std::vector<IncomingCall>& calls)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps calls for later that have no news.
  void Hold(Polls polls, int64_t news_before) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the news, and whom to look at besides; with `all`, everyone.
  News TakeNews(absl::Time now, bool all, HeldPolls::Calls& calls)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds those whom changes of jobs and devices concern, except for takers.
  void AddConcerned(const News& news, const Scheduler::Openings& openings,
                    HeldPolls::Calls& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds who would take the work that there is. Whether there is anybody.
  bool AddTakers(const Scheduler::Openings& openings, absl::Time now,
                 HeldPolls::Calls& calls);
  bool AddTakers(size_t count, const Candidates& candidates, absl::Time now,
                 HeldPolls::Calls& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks the scheduler, and answers those that have news or whose time is up.
  // Whether it could keep what it gave.
  bool Answer(const HeldPolls::Calls& calls, absl::Time now);
  Polls Find(const HeldPolls::Calls& calls) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of `held` that have news or whose time is up.
  Polls WorthAsking(Polls held, absl::Time now);

  Scheduler& scheduler_;
  const std::function<void()> wake_;
  absl::Mutex mutex_;
  HeldPolls polls_ ABSL_GUARDED_BY(mutex_);
  News news_ ABSL_GUARDED_BY(mutex_);
  // Calls that came while there was news.
  HeldPolls::Calls missed_ ABSL_GUARDED_BY(mutex_);
  // Counts news, so that some between asking and holding are not missed.
  int64_t news_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_run_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // When Run is expected next.
  absl::Time next_run_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SCHEDULING_LONG_POLLS_H_
