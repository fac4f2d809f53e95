// Tunes as they run: each asks the search what to try, submits that as ordinary
// jobs of whoever began it, and hands the outcomes back. The search decides the
// same by the same outcomes, so that a tune is begun again from its spec after
// a restart, and finds its jobs by their request ids.

#ifndef OPTFARM_SERVER_TUNING_TUNE_RUNNER_H_
#define OPTFARM_SERVER_TUNING_TUNE_RUNNER_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "engine/tune/search.h"
#include "optfarm/v1/tunes.pb.h"
#include "server/access/access_control.h"
#include "server/access/admission.h"
#include "server/delivery/ticker.h"
#include "server/delivery/trace_exporter.h"
#include "server/scheduling/scheduler.h"
#include "storage/metadata_store.h"
#include "storage/tune_store.h"

namespace optfarm::server {

// THREADS: all methods are safe; Start and Stop from one thread.
class TuneRunner {
 public:
  // OWNERSHIP: all outlive it.
  TuneRunner(Admission& admission, Scheduler& scheduler,
             storage::MetadataStore& store, storage::TuneStore& tunes,
             AccessControl& access, TraceExporter& traces, Clock& clock);
  ~TuneRunner() { Stop(); }

  // Takes up the tunes that have not ended. REQUIRES: the scheduler is loaded.
  absl::Status Start();
  void Stop() { ticker_.Stop(); }

  // Jobs changed. Called without locks of the scheduler.
  void Notify(const std::vector<std::string>& job_ids);

  struct Created {
    v1::Tune tune;
    bool existed = false;
  };
  // ERRORS: those of TuneService.CreateTune.
  absl::StatusOr<Created> Create(const Caller& caller,
                                 const v1::CreateTuneRequest& request);

  // Ends it where it runs. ERRORS: those of the store.
  absl::Status Cancel(const std::string& tune_id, const std::string& reason);

 private:
  struct Running {
    explicit Running(storage::TuneRecord of)
        : record(std::move(of)), search(SearchOf(record.spec)) {}

    storage::TuneRecord record;
    tune::Search search;
    // Batches of candidates so far, and the last with the jobs of its first.
    int round = 0;
    std::vector<tune::Candidate> candidates;
    std::vector<std::string> jobs;
  };

  static tune::Search SearchOf(const v1::TuneSpec& spec);

  absl::Time Step(absl::Time now);
  // Goes on with a tune as far as its jobs have come; false: it has ended.
  bool Advance(Running& tune, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the search for candidates; false: there are no more.
  bool NextRound(Running& tune, absl::Time now);
  absl::Status SubmitAll(Running& tune, absl::Time now);
  absl::StatusOr<std::string> Submit(const Running& tune,
                                     const tune::Candidate& candidate,
                                     absl::Time now);
  // Index of the first job of the round that has not ended; their number: all
  // have.
  absl::StatusOr<size_t> FirstLive(const Running& tune);
  absl::Status Learn(Running& tune, absl::Time now);
  // Tells a search that has learned nothing yet what the latency table has for
  // its devices, and keeps that with the tune: begun again it is told the same.
  absl::Status TellKnownSteps(Running& tune, const std::vector<v1::Job>& jobs);
  absl::Status CheckToken(const Running& tune);
  // Returns whether the tune still runs: the store may refuse its end.
  bool End(Running& tune, v1::TuneState state, const std::string& failure,
           absl::Time now);
  absl::Status SetProgress(Running& tune, const std::string& progress);
  void WaitForJobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Admission& admission_;
  Scheduler& scheduler_;
  storage::MetadataStore& store_;
  storage::TuneStore& tunes_;
  AccessControl& access_;
  TraceExporter& traces_;
  Clock& clock_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Running>> running_ ABSL_GUARDED_BY(mutex_);
  // Never held while anything else is asked.
  absl::Mutex waiting_mutex_;
  // Jobs whose change is of interest.
  std::set<std::string> waiting_ ABSL_GUARDED_BY(waiting_mutex_);
  Ticker ticker_;
};

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_TUNING_TUNE_RUNNER_H_
