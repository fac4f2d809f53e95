#include "engine/benchmark/benchmark.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/benchmark/engine_run.h"
#include "engine/benchmark/environment.h"
#include "engine/benchmark/loaded_variant.h"
#include "engine/benchmark/measurement.h"
#include "engine/benchmark/noise.h"
#include "engine/benchmark/profile.h"
#include "engine/benchmark/statistics.h"

namespace optfarm::benchmark {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxMinRuns = 1'000'000;
// Runs of one variant before it is the next one's turn: enough to warm the
// caches again, few enough to share drift.
constexpr int kRunsPerTurn = 5;
// Traced runs for the time of every step: at least so many, and more for so
// long.
constexpr int kLeastStepRuns = 5;
constexpr absl::Duration kStepTime = absl::Seconds(1);

// Where Optfarm's runtime has the variant that an engine runs too.
size_t ReferenceOf(const BenchmarkRequest& request, size_t variant) {
  const std::string& name = request.variants[variant].same_as;
  size_t i = 0;
  while (i < variant && (request.variants[i].engine != nullptr ||
                         request.variants[i].name != name)) {
    ++i;
  }
  return i;
}

absl::Status CheckEngines(const BenchmarkRequest& request) {
  for (size_t i = 0; i < request.variants.size(); ++i) {
    const BenchmarkVariant& variant = request.variants[i];
    if (variant.engine == nullptr || ReferenceOf(request, i) < i) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("variant '", variant.name, "' is to be compared with '",
                     variant.same_as,
                     "', which is no earlier variant of Optfarm's runtime"));
  }
  return absl::OkStatus();
}

absl::Status Check(const BenchmarkRequest& request) {
  if (request.variants.empty()) {
    return absl::InvalidArgumentError("There is no graph to benchmark");
  }
  for (const int threads : request.threads) {
    if (threads < 1 || threads > kMaxThreads) {
      return absl::InvalidArgumentError(
          absl::StrCat("threads is ", threads, "; give 1 to ", kMaxThreads));
    }
  }
  if (request.min_runs < 1 || request.min_runs > kMaxMinRuns) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_runs is ", request.min_runs, "; give 1 to ", kMaxMinRuns));
  }
  if (!(request.precision >= 0 && request.precision < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("precision is ", request.precision,
                     "; give a fraction from 0 to below 1"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckEngines(request));
  if (request.max_time <= absl::ZeroDuration() ||
      request.min_time > request.max_time) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The shortest time is ", absl::FormatDuration(request.min_time),
        " and the longest ", absl::FormatDuration(request.max_time),
        "; give a longest above 0 that is not below the shortest"));
  }
  return absl::OkStatus();
}

std::vector<int> ThreadCounts(const BenchmarkRequest& request) {
  if (!request.threads.empty()) return request.threads;
  const int most = std::min(4, UsableCores());
  return most > 1 ? std::vector<int>{1, most} : std::vector<int>{1};
}

// One variant with one thread count while it is measured.
struct Subject {
  const BenchmarkVariant* variant = nullptr;
  LoadedVariant loaded;
  // Of Optfarm's runtime, where an engine runs the same; of an engine, the
  // subject that it is compared with.
  ReferenceRun reference;
  Subject* same = nullptr;
  bool is_loaded = false;
  // Of the engine.
  std::string version;
  // Why the engine does not run it; empty: it does.
  std::string failure;
  v1::Measurement measurement;
  std::vector<double> micros;
  absl::Duration measured;
  // Number of runs at which the precision is looked at next, and whether it was
  // good enough.
  size_t next_look = 0;
  bool precise = false;

  bool OutOfTime(const BenchmarkRequest& request) const {
    return measured >= request.max_time;
  }
  bool Done(const BenchmarkRequest& request) const {
    if (!failure.empty() || OutOfTime(request)) return true;
    return static_cast<int>(micros.size()) >= request.min_runs &&
           measured >= request.min_time && (precise || request.precision <= 0);
  }
  // Sorting all runs after each one would take longer than they do.
  void LookAtPrecision(const BenchmarkRequest& request) {
    if (request.precision <= 0 || precise || micros.size() < next_look) return;
    next_look = micros.size() + micros.size() / 8 + 1;
    precise = static_cast<int>(micros.size()) >= request.min_runs &&
              MedianPrecision(Summarize(micros)) <= request.precision;
  }
};

absl::StatusOr<absl::Duration> RunOurs(
    const Subject& subject, runtime::RunTrace* trace = nullptr,
    std::vector<runtime::Tensor>* answers = nullptr) {
  const absl::Time start = absl::Now();
  auto outputs = subject.loaded.session->Run(subject.loaded.inputs, trace);
  const absl::Duration duration = absl::Now() - start;
  if (!outputs.ok()) {
    return Annotate(outputs.status(), absl::StrCat("While running variant '",
                                                   subject.variant->name, "'"));
  }
  if (answers != nullptr) *answers = *std::move(outputs);
  return duration;
}

// Times of `timed` runs in a row, after `untimed` ones.
absl::StatusOr<std::vector<absl::Duration>> RunTurn(Subject& subject,
                                                    int untimed, int timed) {
  std::vector<absl::Duration> times;
  if (EngineProcess* engine = subject.variant->engine.get()) {
    OPTFARM_ASSIGN_OR_RETURN(const engine_host::RunTimes told,
                             engine->Run(untimed, timed));
    for (const double micros : told.micros) {
      times.push_back(absl::Microseconds(micros));
    }
    subject.measurement.set_peak_memory_bytes(
        static_cast<int64_t>(std::min<uint64_t>(told.peak_bytes, INT64_MAX)));
    return times;
  }
  for (int i = 0; i < untimed + timed; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const absl::Duration run, RunOurs(subject));
    if (i >= untimed) times.push_back(run);
  }
  return times;
}

// Runs of this turn: fewer where a turn would go far beyond the longest time.
int TurnLength(const BenchmarkRequest& request, const Subject& subject) {
  const absl::Duration left = request.max_time - subject.measured;
  const absl::Duration one =
      absl::Microseconds(std::max(subject.measurement.first_us(), 1.0));
  const double fitting = std::ceil(absl::FDivDuration(left, one));
  return static_cast<int>(std::clamp(fitting, 1.0, double{kRunsPerTurn}));
}

// The first run and the warm-up.
absl::Status WarmUp(const BenchmarkRequest& request, Subject* subject) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<absl::Duration> first,
                           RunTurn(*subject, 0, 1));
  subject->measurement.set_first_us(absl::ToDoubleMicroseconds(first[0]));
  absl::Duration spent = first[0];
  for (int i = 1; i < request.warmup_runs && spent < request.max_time; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<absl::Duration> run,
                             RunTurn(*subject, 0, 1));
    spent += run[0];
  }
  subject->measurement.set_warmup_runs(std::max(1, request.warmup_runs));
  return absl::OkStatus();
}

// Loads and runs a variant alone: load time, first run, warm-up, peak memory.
absl::Status MeasureOursAlone(const BenchmarkRequest& request, int threads,
                              bool is_reference, Subject* subject) {
  // What earlier variants freed goes back to the system first, or it would
  // count for this one.
  malloc_trim(0);
  const bool peak_known = ResetPeakResident();
  OPTFARM_ASSIGN_OR_RETURN(subject->loaded,
                           LoadVariant(*subject->variant, request, threads));
  subject->is_loaded = true;
  v1::Measurement& m = subject->measurement;
  m.set_load_us(absl::ToDoubleMicroseconds(subject->loaded.load_time));
  OPTFARM_RETURN_IF_ERROR(WarmUp(request, subject));
  m.set_inputs_fed(subject->loaded.inputs_fed);
  if (peak_known) m.set_peak_memory_bytes(PeakResidentBytes());
  if (!is_reference) return absl::OkStatus();
  // Outside of all that is measured: the answers are kept.
  OPTFARM_ASSIGN_OR_RETURN(LoadedVariant fresh,
                           LoadVariant(*subject->variant, request, threads));
  std::swap(subject->loaded, fresh);
  ReferenceRun& reference = subject->reference;
  OPTFARM_RETURN_IF_ERROR(
      RunOurs(*subject, nullptr, &reference.outputs).status());
  reference.input_names = subject->loaded.input_names;
  reference.output_names = subject->loaded.output_names;
  reference.inputs = subject->loaded.inputs;
  reference.is_quantized = subject->loaded.is_quantized;
  return absl::OkStatus();
}

// The same in an engine, whose process has no other memory to be counted.
absl::Status MeasureTheirsAlone(const BenchmarkRequest& request, int threads,
                                Subject* subject) {
  EngineProcess* engine = subject->variant->engine.get();
  const ReferenceRun& reference = subject->same->reference;
  OPTFARM_ASSIGN_OR_RETURN(
      const EngineLoad load,
      LoadInEngine(subject->variant->graph_path, reference, threads, engine));
  subject->is_loaded = true;
  v1::Measurement& m = subject->measurement;
  subject->version = load.version;
  m.set_engine(absl::StrCat(engine->name(), " ", load.version));
  m.set_load_us(absl::ToDoubleMicroseconds(load.load_time));
  m.set_inputs_fed(subject->same->measurement.inputs_fed());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<absl::Duration> first,
                           RunTurn(*subject, 0, 1));
  OPTFARM_ASSIGN_OR_RETURN(*m.mutable_numeric_check(),
                           CompareAnswers(reference, load, engine));
  OPTFARM_RETURN_IF_ERROR(WarmUp(request, subject));
  m.set_first_us(absl::ToDoubleMicroseconds(first[0]));
  return absl::OkStatus();
}

absl::Status Describe(const BenchmarkRequest& request, int threads,
                      Subject* subject) {
  v1::Measurement& m = subject->measurement;
  m.set_variant(subject->variant->name);
  m.set_threads(threads);
  m.set_device(request.device);
  return FillModelFile(subject->variant->graph_path, &m);
}

// OK where the trouble is an engine's own, which ends its part in this and
// nothing else.
absl::Status Forgive(const absl::Status& status, Subject* subject) {
  if (status.ok() || subject->variant->engine == nullptr) return status;
  subject->failure = std::string(status.message());
  return absl::OkStatus();
}

absl::Status TakeTurn(const BenchmarkRequest& request, bool alone,
                      Subject* subject) {
  // One run outside the count: the other variant has used the caches.
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<absl::Duration> times,
      RunTurn(*subject, alone ? 0 : 1, TurnLength(request, *subject)));
  for (const absl::Duration run : times) {
    if (subject->Done(request)) break;
    subject->micros.push_back(absl::ToDoubleMicroseconds(run));
    subject->measured += run;
  }
  return absl::OkStatus();
}

// Runs all subjects in turns until each is done.
absl::Status RunRounds(const BenchmarkRequest& request,
                       const std::function<absl::Status(double)>& tell,
                       std::vector<Subject>* subjects) {
  for (bool done = false; !done;) {
    done = true;
    double least = 1;
    for (Subject& subject : *subjects) {
      if (!subject.Done(request)) {
        OPTFARM_RETURN_IF_ERROR(Forgive(
            TakeTurn(request, subjects->size() == 1, &subject), &subject));
      }
      subject.LookAtPrecision(request);
      done &= subject.Done(request);
      if (!subject.failure.empty()) continue;
      least = std::min(
          least, static_cast<double>(subject.micros.size()) / request.min_runs);
    }
    OPTFARM_RETURN_IF_ERROR(tell(least));
  }
  return absl::OkStatus();
}

absl::Status Profile(const BenchmarkRequest& request, Subject* subject) {
  if (subject->variant->engine != nullptr) return absl::OkStatus();
  std::vector<runtime::RunTrace> traces;
  for (int i = 0; i < request.profile_runs; ++i) {
    OPTFARM_RETURN_IF_ERROR(RunOurs(*subject, &traces.emplace_back()).status());
  }
  FillProfile(traces, &subject->measurement);
  if (!subject->loaded.step_works.has_value()) return absl::OkStatus();
  // Of long runs fewer: what is measured by then is enough.
  const absl::Time until = absl::Now() + kStepTime;
  for (int i = 0; i < request.step_runs; ++i) {
    if (i >= kLeastStepRuns && absl::Now() > until) break;
    OPTFARM_RETURN_IF_ERROR(RunOurs(*subject, &traces.emplace_back()).status());
  }
  FillSteps(traces, *subject->loaded.step_works, &subject->measurement);
  return absl::OkStatus();
}

// Each variant by itself, the engines' too.
absl::Status MeasureEachAlone(const BenchmarkRequest& request, int threads,
                              std::vector<Subject>* subjects) {
  std::vector<bool> is_reference(subjects->size(), false);
  for (size_t i = 0; i < subjects->size(); ++i) {
    Subject& subject = (*subjects)[i];
    subject.variant = &request.variants[i];
    if (subject.variant->engine == nullptr) continue;
    const size_t reference = ReferenceOf(request, i);
    subject.same = &(*subjects)[reference];
    is_reference[reference] = true;
  }
  for (size_t i = 0; i < subjects->size(); ++i) {
    Subject& subject = (*subjects)[i];
    OPTFARM_RETURN_IF_ERROR(Describe(request, threads, &subject));
    if (subject.variant->engine == nullptr) {
      OPTFARM_RETURN_IF_ERROR(
          MeasureOursAlone(request, threads, is_reference[i], &subject));
      // The next one's memory is to be its own.
      if (subjects->size() > 1) subject.loaded = {};
      subject.is_loaded = subjects->size() == 1;
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(
        Forgive(MeasureTheirsAlone(request, threads, &subject), &subject));
  }
  return absl::OkStatus();
}

absl::Status LoadAll(const BenchmarkRequest& request, int threads,
                     std::vector<Subject>* subjects) {
  for (Subject& subject : *subjects) {
    if (subject.is_loaded || subject.variant->engine != nullptr) continue;
    OPTFARM_ASSIGN_OR_RETURN(subject.loaded,
                             LoadVariant(*subject.variant, request, threads));
    OPTFARM_RETURN_IF_ERROR(RunOurs(subject).status());
  }
  return absl::OkStatus();
}

// Frees the engine's model.
EngineOutcome EndEngine(int threads, const Subject& subject) {
  EngineProcess* engine = subject.variant->engine.get();
  engine->Unload().IgnoreError();
  return {subject.variant->name, engine->name(), threads, subject.version,
          subject.failure};
}

// All variants with one thread count.
absl::StatusOr<std::vector<v1::Measurement>> MeasureThreadCount(
    const BenchmarkRequest& request, int threads,
    const std::function<absl::Status(double)>& tell,
    std::vector<EngineOutcome>* engines) {
  const v1::Environment before = ReadEnvironment(request.build_version);
  std::vector<Subject> subjects(request.variants.size());
  OPTFARM_RETURN_IF_ERROR(MeasureEachAlone(request, threads, &subjects));
  OPTFARM_RETURN_IF_ERROR(LoadAll(request, threads, &subjects));
  const absl::Time taken_at = absl::Now();
  OPTFARM_RETURN_IF_ERROR(RunRounds(request, tell, &subjects));
  const v1::Environment after = ReadEnvironment(request.build_version);
  for (Subject& subject : subjects) {
    if (subject.variant->engine == nullptr) continue;
    EngineOutcome outcome = EndEngine(threads, subject);
    if (!outcome.failure.empty()) {
      v1::EngineFailure& failure =
          *subject.same->measurement.add_engine_failures();
      failure.set_engine(outcome.engine);
      failure.set_reason(outcome.failure);
    }
    if (engines != nullptr) engines->push_back(std::move(outcome));
  }
  std::vector<v1::Measurement> measurements;
  for (Subject& subject : subjects) {
    if (!subject.failure.empty()) continue;
    OPTFARM_RETURN_IF_ERROR(Profile(request, &subject));
    FillTimes(subject.micros, taken_at, before, after, &subject.measurement);
    if (request.precision > 0 && !subject.precise) {
      AddNoiseReason(
          MissedPrecision(Summarize(subject.micros), request.precision),
          &subject.measurement);
    }
    measurements.push_back(std::move(subject.measurement));
  }
  return measurements;
}

}  // namespace

absl::StatusOr<std::vector<v1::Measurement>> RunBenchmark(
    const BenchmarkRequest& request, const BenchmarkProgressFn& progress,
    std::vector<EngineOutcome>* engines) {
  OPTFARM_RETURN_IF_ERROR(Check(request));
  const std::vector<int> counts = ThreadCounts(request);
  std::vector<v1::Measurement> all;
  for (size_t t = 0; t < counts.size(); ++t) {
    const std::string stage = absl::StrCat(
        "measuring with ", counts[t], counts[t] == 1 ? " thread" : " threads");
    const auto tell = [&](double fraction) -> absl::Status {
      if (!progress) return absl::OkStatus();
      const double share = std::clamp(fraction, 0.0, 1.0);
      return progress({stage, (static_cast<double>(t) + share) /
                                  static_cast<double>(counts.size())});
    };
    OPTFARM_RETURN_IF_ERROR(tell(0));
    OPTFARM_ASSIGN_OR_RETURN(
        std::vector<v1::Measurement> measurements,
        MeasureThreadCount(request, counts[t], tell, engines));
    std::move(measurements.begin(), measurements.end(),
              std::back_inserter(all));
  }
  return all;
}

}  // namespace optfarm::benchmark
