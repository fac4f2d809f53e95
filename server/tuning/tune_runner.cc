#include "server/tuning/tune_runner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "engine/tune/latency_table.h"
#include "rpc/proto_time.h"
#include "rpc/retry.h"
#include "server/delivery/job_view.h"
#include "server/delivery/tune_trace.h"
#include "server/scheduling/job_spec_check.h"
#include "server/tuning/tune_plan.h"

namespace optfarm::server {
namespace {

// Of a project at a time; each has up to eight jobs at once.
constexpr size_t kMostRunning = 8;
// Between two looks, if no job wakes it.
constexpr absl::Duration kInterval = absl::Seconds(5);
// Submits of one candidate that earlier tunes' jobs leave unfinished.
constexpr int kMostAttempts = 100;
// UNITS: steps of other models that a search is told, of one place and of all;
// they are kept with the tune.
constexpr int kMostKnownSteps = 5000;
constexpr int kMostKnownOfAll = 50'000;

std::string NewTuneId() {
  static constexpr char kDigits[] = "0123456789abcdefghjkmnpqrstvwxyz";
  absl::BitGen random;
  std::string id = "t";
  for (int i = 0; i < 12; ++i) id += kDigits[absl::Uniform(random, 0, 32)];
  return id;
}

// Whether a job that an earlier tune submitted ended by the farm's trouble or
// somebody's will, so that it is worth another go.
bool MayGoBetter(const storage::JobRecord& job, const v1::Tune& tune) {
  return job.create_time < rpc::FromTimestamp(tune.create_time()) &&
         (job.state == v1::CANCELLED ||
          (job.state == v1::FAILED && job.failure.has_value() &&
           job.failure->kind() == v1::Failure::INTERNAL));
}

// A full farm, or a store that is away: time helps.
bool MayBeTriedAgain(const absl::Status& status) {
  return rpc::IsTransient(status) || absl::IsResourceExhausted(status);
}

// What the jobs' devices took for steps, by kind of machine.
std::vector<storage::MachineSteps> StepsOf(const std::vector<v1::Job>& jobs) {
  std::map<std::string, std::vector<v1::StepTime>> machines;
  for (const v1::Job& job : jobs) {
    for (const v1::Measurement& measured : job.measurements()) {
      if (measured.steps().empty()) continue;
      std::vector<v1::StepTime>& steps = machines[tune::MachineOf(measured)];
      for (const v1::StepTime& step : measured.steps()) {
        if (step.work().key().empty() || !std::isfinite(step.median_us()) ||
            step.median_us() <= 0) {
          continue;
        }
        steps.push_back(step);
      }
    }
  }
  std::vector<storage::MachineSteps> all;
  for (auto& [machine, steps] : machines) {
    all.push_back({machine, std::move(steps)});
  }
  return all;
}

Caller OwnerOf(const storage::TuneRecord& record) {
  Caller caller;
  caller.name = record.tune.owner();
  caller.scopes = record.scopes;
  caller.token_id = record.token_id;
  caller.project = record.tune.project();
  return caller;
}

}  // namespace

TuneRunner::TuneRunner(Admission& admission, Scheduler& scheduler,
                       storage::MetadataStore& store, storage::TuneStore& tunes,
                       AccessControl& access, TraceExporter& traces,
                       Clock& clock)
    : admission_(admission),
      scheduler_(scheduler),
      store_(store),
      tunes_(tunes),
      access_(access),
      traces_(traces),
      clock_(clock),
      ticker_(clock, [this](absl::Time now) { return Step(now); }) {}

tune::Search TuneRunner::SearchOf(const v1::TuneSpec& spec) {
  return tune::Search(SearchOptionsOf(spec));
}

absl::Status TuneRunner::Start() {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<storage::TuneRecord> records,
                           tunes_.ListRunning());
  {
    absl::MutexLock lock(&mutex_);
    for (storage::TuneRecord& record : records) {
      running_.push_back(std::make_unique<Running>(std::move(record)));
    }
  }
  ticker_.Start();
  return absl::OkStatus();
}

void TuneRunner::Notify(const std::vector<std::string>& job_ids) {
  {
    absl::MutexLock lock(&waiting_mutex_);
    bool is_waited_for = false;
    for (const std::string& id : job_ids) {
      is_waited_for |= waiting_.contains(id);
    }
    if (!is_waited_for) return;
  }
  ticker_.Wake();
}

void TuneRunner::WaitForJobs() {
  std::set<std::string> jobs;
  for (const auto& tune : running_) {
    jobs.insert(tune->jobs.begin(), tune->jobs.end());
  }
  absl::MutexLock lock(&waiting_mutex_);
  waiting_ = std::move(jobs);
}

absl::StatusOr<TuneRunner::Created> TuneRunner::Create(
    const Caller& caller, const v1::CreateTuneRequest& request) {
  OPTFARM_RETURN_IF_ERROR(CheckClientRequestId(request.client_request_id()));
  storage::TuneRecord record;
  record.spec_digest = Sha256Hex(request.spec().SerializeAsString());
  if (!request.client_request_id().empty()) {
    record.client_request_id =
        OfProject(caller.project, request.client_request_id());
  }
  absl::MutexLock lock(&mutex_);
  if (!record.client_request_id.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(
        std::optional<storage::TuneRecord> known,
        tunes_.FindClientRequest(record.client_request_id));
    if (known.has_value() && known->spec_digest == record.spec_digest) {
      return Created{std::move(known->tune), true};
    }
    if (known.has_value()) {
      return absl::AlreadyExistsError(
          absl::StrCat("the client_request_id '", request.client_request_id(),
                       "' was used for another tune, ", known->tune.tune_id()));
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(record.spec, CheckTuneSpec(request.spec()));
  const auto of_project = static_cast<size_t>(
      std::count_if(running_.begin(), running_.end(), [&](const auto& tune) {
        return tune->record.tune.project() == caller.project;
      }));
  if (of_project >= kMostRunning) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the project ", caller.project, " has ", of_project,
                     " tunes that run and may have ", kMostRunning,
                     "; wait for one, or cancel one"));
  }
  const absl::Time now = clock_.Now();
  record.token_id = caller.token_id;
  record.scopes = caller.scopes;
  v1::Tune& tune = record.tune;
  tune.set_tune_id(NewTuneId());
  tune.set_project(caller.project);
  tune.set_owner(caller.name);
  tune.set_state(v1::TUNE_RUNNING);
  *tune.mutable_create_time() = rpc::ToTimestamp(now);
  tune.set_job_name(JobNameOf(record.spec, tune.tune_id()));
  *tune.mutable_spec() = ShownSpec(record.spec);
  auto running = std::make_unique<Running>(std::move(record));
  // Whatever a job is refused for, a tune is, before it is there.
  running->candidates = running->search.Next();
  ++running->round;
  OPTFARM_ASSIGN_OR_RETURN(const std::string first,
                           Submit(*running, running->candidates.front(), now));
  running->jobs.push_back(first);
  OPTFARM_RETURN_IF_ERROR(tunes_.Add(running->record));
  Created created{running->record.tune, false};
  running_.push_back(std::move(running));
  ticker_.Wake();
  return created;
}

absl::Status TuneRunner::Cancel(const std::string& tune_id,
                                const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      running_.begin(), running_.end(),
      [&](const auto& tune) { return tune->record.tune.tune_id() == tune_id; });
  if (found == running_.end()) return absl::OkStatus();
  const absl::Time now = clock_.Now();
  if (End(**found, v1::TUNE_CANCELLED, reason, now)) {
    return absl::UnavailableError(absl::StrCat(
        "the end of the tune ", tune_id, " could not be written; try again"));
  }
  const std::vector<std::string> jobs = std::move((*found)->jobs);
  running_.erase(found);
  WaitForJobs();
  for (const std::string& job : jobs) {
    const bool is_shared =
        std::any_of(running_.begin(), running_.end(), [&](const auto& tune) {
          return std::find(tune->jobs.begin(), tune->jobs.end(), job) !=
                 tune->jobs.end();
        });
    if (is_shared) continue;
    const absl::Status status = scheduler_.Cancel(
        job, absl::StrCat("the tune ", tune_id, " was cancelled"), now);
    if (!status.ok()) {
      LogWarning("cancelling job ", job, " of the tune ", tune_id, ": ",
                 status.message());
    }
  }
  return absl::OkStatus();
}

absl::Time TuneRunner::Step(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(running_, [&](const std::unique_ptr<Running>& tune)
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                return !Advance(*tune, now);
                              });
  WaitForJobs();
  return running_.empty() ? absl::InfiniteFuture() : now + kInterval;
}

bool TuneRunner::Advance(Running& tune, absl::Time now) {
  while (true) {
    if (tune.candidates.empty()) {
      if (const absl::Status status = CheckToken(tune); !status.ok()) {
        return End(tune, v1::TUNE_FAILED, std::string(status.message()), now);
      }
      if (!NextRound(tune, now)) {
        return End(tune, v1::TUNE_SUCCEEDED, "", now);
      }
    }
    if (const absl::Status status = SubmitAll(tune, now); !status.ok()) {
      if (!MayBeTriedAgain(status)) {
        return End(tune, v1::TUNE_FAILED, std::string(status.message()), now);
      }
      SetProgress(tune, absl::StrCat("waits: ", status.message()))
          .IgnoreError();
      return true;
    }
    // A job may end between a look at it and the next: what wakes the step must
    // be known before.
    WaitForJobs();
    const absl::StatusOr<size_t> live = FirstLive(tune);
    if (absl::IsNotFound(live.status())) {
      return End(tune, v1::TUNE_FAILED,
                 absl::StrCat("a job of it is gone: ", live.status().message()),
                 now);
    }
    // The store is away for a while.
    if (!live.ok()) return true;
    if (*live < tune.jobs.size()) {
      SetProgress(tune, absl::StrCat(tune.candidates[*live].name, ", ",
                                     *live + 1, " of ", tune.candidates.size()))
          .IgnoreError();
      return true;
    }
    if (const absl::Status status = Learn(tune, now); !status.ok()) {
      if (rpc::IsTransient(status)) return true;
      return End(tune, v1::TUNE_FAILED, std::string(status.message()), now);
    }
  }
}

bool TuneRunner::NextRound(Running& tune, absl::Time now) {
  storage::TuneRecord& record = tune.record;
  if (record.finish_round < 0 && record.spec.has_budget()) {
    const absl::Time end = rpc::FromTimestamp(record.tune.create_time()) +
                           rpc::FromProtoDuration(record.spec.budget());
    if (now > end) {
      // Kept before it counts, so that the tune does the same when it is begun
      // again.
      record.finish_round = tune.round;
      if (const absl::Status status = tunes_.Update(record); !status.ok()) {
        LogWarning("noting the budget's end of the tune ",
                   record.tune.tune_id(), ": ", status.message());
      }
    }
  }
  if (record.finish_round >= 0 && tune.round >= record.finish_round) {
    tune.search.Finish();
  }
  tune.candidates = tune.search.Next();
  tune.jobs.clear();
  ++tune.round;
  return !tune.candidates.empty();
}

absl::Status TuneRunner::SubmitAll(Running& tune, absl::Time now) {
  while (tune.jobs.size() < tune.candidates.size()) {
    const tune::Candidate& candidate = tune.candidates[tune.jobs.size()];
    absl::StatusOr<std::string> job = Submit(tune, candidate, now);
    OPTFARM_RETURN_IF_ERROR(Annotate(
        job.status(), absl::StrCat("submitting candidate ", candidate.name)));
    tune.jobs.push_back(*std::move(job));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TuneRunner::Submit(const Running& tune,
                                               const tune::Candidate& candidate,
                                               absl::Time now) {
  const storage::TuneRecord& record = tune.record;
  // Jobs of an earlier tune stay a part of that one's trace.
  const std::string trace_parent =
      traces_.is_on() ? TuneTraceParent(record.tune.tune_id()) : "";
  for (int attempt = 1;; ++attempt) {
    OPTFARM_ASSIGN_OR_RETURN(
        const SubmitResult result,
        admission_.Submit(OwnerOf(record),
                          CandidateJob(record.spec, record.tune.job_name(),
                                       candidate, attempt),
                          now, trace_parent));
    if (!result.existed || attempt == kMostAttempts) return result.job_id;
    OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob stored,
                             store_.GetJob(result.job_id));
    if (!MayGoBetter(stored.job, record.tune)) return result.job_id;
  }
}

absl::StatusOr<size_t> TuneRunner::FirstLive(const Running& tune) {
  for (size_t i = 0; i < tune.jobs.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob stored,
                             store_.GetJob(tune.jobs[i]));
    if (!HasEnded(stored.job.state)) return i;
  }
  return tune.jobs.size();
}

absl::Status TuneRunner::TellKnownSteps(Running& tune,
                                        const std::vector<v1::Job>& jobs) {
  storage::TuneRecord& record = tune.record;
  if (!record.known_steps.has_value()) {
    const v1::TuneSpec& spec = record.spec;
    const int places =
        std::max(1, spec.devices_size() * spec.thread_counts_size());
    const int most = std::min(kMostKnownSteps, kMostKnownOfAll / places);
    v1::BenchmarkResult known;
    std::set<tune::Place> told;
    for (const v1::Job& job : jobs) {
      for (const v1::Measurement& measured : job.measurements()) {
        const tune::Place place{measured.device(), measured.threads()};
        if (measured.steps().empty() || !told.insert(place).second) continue;
        OPTFARM_ASSIGN_OR_RETURN(
            const std::vector<v1::StepTime> steps,
            tunes_.StepsOn(tune::MachineOf(measured), most));
        v1::Measurement& on_place = *known.add_measurements();
        on_place.set_device(place.device);
        on_place.set_threads(place.threads);
        on_place.mutable_steps()->Assign(steps.begin(), steps.end());
      }
    }
    OPTFARM_RETURN_IF_ERROR(
        tunes_.KeepKnownSteps(record.tune.tune_id(), known));
    record.known_steps = std::move(known);
  }
  for (const v1::Measurement& place : record.known_steps->measurements()) {
    const std::vector<v1::StepTime> steps(place.steps().begin(),
                                          place.steps().end());
    tune.search.Know({place.device(), place.threads()}, steps);
  }
  return absl::OkStatus();
}

absl::Status TuneRunner::Learn(Running& tune, absl::Time now) {
  std::vector<v1::Job> jobs;
  for (const std::string& job_id : tune.jobs) {
    OPTFARM_ASSIGN_OR_RETURN(const storage::StoredJob stored,
                             store_.GetJob(job_id));
    jobs.push_back(ToProto(stored));
    OPTFARM_RETURN_IF_ERROR(AddOutcome(store_, jobs.back()));
  }
  if (tune.round == 1) OPTFARM_RETURN_IF_ERROR(TellKnownSteps(tune, jobs));
  OPTFARM_RETURN_IF_ERROR(tunes_.AddSteps(tune.record.tune.tune_id(),
                                          tune.round, StepsOf(jobs), now));
  for (size_t i = 0; i < jobs.size(); ++i) {
    OPTFARM_RETURN_IF_ERROR(
        tune.search.Add(tune.candidates[i], std::move(jobs[i])));
  }
  tune.candidates.clear();
  return absl::OkStatus();
}

absl::Status TuneRunner::CheckToken(const Running& tune) {
  const std::string& token_id = tune.record.token_id;
  if (token_id.empty()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<storage::TokenRecord> tokens,
                           access_.List());
  for (const storage::TokenRecord& token : tokens) {
    if (token.token_id == token_id &&
        token.revoke_time != absl::InfinitePast()) {
      return absl::PermissionDeniedError(
          absl::StrCat("the token '", token.name,
                       "' that began it was "
                       "revoked; begin it again with another"));
    }
  }
  return absl::OkStatus();
}

bool TuneRunner::End(Running& tune, v1::TuneState state,
                     const std::string& failure, absl::Time now) {
  v1::Tune& shown = tune.record.tune;
  const v1::Tune before = shown;
  shown.set_state(state);
  shown.set_failure(failure);
  *shown.mutable_end_time() = rpc::ToTimestamp(now);
  const absl::Status status = SetProgress(tune, "");
  if (status.ok()) {
    traces_.NoteEnd(shown);
    return false;
  }
  LogWarning("noting the end of the tune ", shown.tune_id(), ": ",
             status.message());
  shown = before;
  return true;
}

absl::Status TuneRunner::SetProgress(Running& tune,
                                     const std::string& progress) {
  v1::Tune& shown = tune.record.tune;
  v1::TuneReport report = tune.search.Report();
  report.set_model_name(tune.record.spec.job().model().name());
  *report.mutable_model() = tune.record.spec.job().model().digest();
  report.set_threads(tune.record.spec.threads());
  if (shown.state() == v1::TUNE_RUNNING && shown.progress() == progress &&
      shown.report().measured() == report.measured() &&
      shown.report().judged() == report.judged()) {
    return absl::OkStatus();
  }
  shown.set_progress(progress);
  *shown.mutable_report() = std::move(report);
  return tunes_.Update(tune.record);
}

}  // namespace optfarm::server
