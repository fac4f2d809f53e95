#include "engine/benchmark/benchmark.h"

#include <malloc.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
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
    if (OutOfTime(request)) return true;
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

absl::StatusOr<absl::Duration> RunOnce(const Subject& subject,
                                       runtime::RunTrace* trace = nullptr) {
  const absl::Time start = absl::Now();
  const auto outputs =
      subject.loaded.session->Run(subject.loaded.inputs, trace);
  const absl::Duration duration = absl::Now() - start;
  if (!outputs.ok()) {
    return Annotate(outputs.status(), absl::StrCat("While running variant '",
                                                   subject.variant->name, "'"));
  }
  return duration;
}

// Loads and runs a variant alone: load time, first run, warm-up, peak memory.
absl::Status MeasureAlone(const BenchmarkRequest& request, int threads,
                          Subject* subject) {
  // What earlier variants freed goes back to the system first, or it would
  // count for this one.
  malloc_trim(0);
  const bool peak_known = ResetPeakResident();
  OPTFARM_ASSIGN_OR_RETURN(subject->loaded,
                           LoadVariant(*subject->variant, request, threads));
  v1::Measurement& m = subject->measurement;
  m.set_load_us(absl::ToDoubleMicroseconds(subject->loaded.load_time));
  OPTFARM_ASSIGN_OR_RETURN(const absl::Duration first, RunOnce(*subject));
  m.set_first_us(absl::ToDoubleMicroseconds(first));
  absl::Duration spent = first;
  for (int i = 1; i < request.warmup_runs && spent < request.max_time; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const absl::Duration run, RunOnce(*subject));
    spent += run;
  }
  m.set_warmup_runs(std::max(1, request.warmup_runs));
  m.set_inputs_fed(subject->loaded.inputs_fed);
  if (peak_known) m.set_peak_memory_bytes(PeakResidentBytes());
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

// Runs all subjects in turns until each is done.
absl::Status RunRounds(const BenchmarkRequest& request,
                       const std::function<absl::Status(double)>& tell,
                       std::vector<Subject>* subjects) {
  for (bool done = false; !done;) {
    done = true;
    double least = 1;
    for (Subject& subject : *subjects) {
      // One run outside the count: the other variant has used the caches.
      if (!subject.Done(request) && subjects->size() > 1) {
        OPTFARM_RETURN_IF_ERROR(RunOnce(subject).status());
      }
      for (int i = 0; i < kRunsPerTurn && !subject.Done(request); ++i) {
        OPTFARM_ASSIGN_OR_RETURN(const absl::Duration run, RunOnce(subject));
        subject.micros.push_back(absl::ToDoubleMicroseconds(run));
        subject.measured += run;
      }
      subject.LookAtPrecision(request);
      done &= subject.Done(request);
      least = std::min(
          least, static_cast<double>(subject.micros.size()) / request.min_runs);
    }
    OPTFARM_RETURN_IF_ERROR(tell(least));
  }
  return absl::OkStatus();
}

absl::Status Profile(const BenchmarkRequest& request, Subject* subject) {
  std::vector<runtime::RunTrace> traces;
  for (int i = 0; i < request.profile_runs; ++i) {
    OPTFARM_RETURN_IF_ERROR(RunOnce(*subject, &traces.emplace_back()).status());
  }
  FillProfile(traces, &subject->measurement);
  return absl::OkStatus();
}

// All variants with one thread count.
absl::StatusOr<std::vector<v1::Measurement>> MeasureThreadCount(
    const BenchmarkRequest& request, int threads,
    const std::function<absl::Status(double)>& tell) {
  const v1::Environment before = ReadEnvironment(request.build_version);
  std::vector<Subject> subjects(request.variants.size());
  for (size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].variant = &request.variants[i];
    OPTFARM_RETURN_IF_ERROR(Describe(request, threads, &subjects[i]));
    OPTFARM_RETURN_IF_ERROR(MeasureAlone(request, threads, &subjects[i]));
    // The next one's memory is to be its own.
    if (subjects.size() > 1) subjects[i].loaded = {};
  }
  for (Subject& subject : subjects) {
    if (subject.loaded.session != nullptr) continue;
    OPTFARM_ASSIGN_OR_RETURN(subject.loaded,
                             LoadVariant(*subject.variant, request, threads));
    OPTFARM_RETURN_IF_ERROR(RunOnce(subject).status());
  }
  const absl::Time taken_at = absl::Now();
  OPTFARM_RETURN_IF_ERROR(RunRounds(request, tell, &subjects));
  const v1::Environment after = ReadEnvironment(request.build_version);
  std::vector<v1::Measurement> measurements;
  for (Subject& subject : subjects) {
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
    const BenchmarkRequest& request, const BenchmarkProgressFn& progress) {
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
    OPTFARM_ASSIGN_OR_RETURN(std::vector<v1::Measurement> measurements,
                             MeasureThreadCount(request, counts[t], tell));
    std::move(measurements.begin(), measurements.end(),
              std::back_inserter(all));
  }
  return all;
}

}  // namespace optfarm::benchmark
