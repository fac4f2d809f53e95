#include "engine/benchmark/model_benchmark.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/benchmark/affinity.h"
#include "engine/benchmark/environment.h"
#include "engine/benchmark/loaded_variant.h"
#include "engine/benchmark/measurement.h"
#include "engine/benchmark/memory_sampler.h"
#include "engine/benchmark/profile.h"
#include "engine/benchmark/report_files.h"

namespace optfarm::benchmark {
namespace {

constexpr int kMaxThreads = 256;
// Traces summed up into Measurement's own profile.
constexpr size_t kMeasurementTraces = 20;

bool HasLeast(const RunLimits& limits) {
  return limits.min_runs > 0 || limits.min_time > absl::ZeroDuration();
}

absl::Status CheckLimits(const RunLimits& limits) {
  if (limits.max_runs > 0 || limits.max_time < absl::InfiniteDuration() ||
      HasLeast(limits)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "neither runs nor time are limited: the benchmark would never end; give "
      "--max_num_runs or --max_time above 0");
}

absl::Status Check(const ModelBenchmarkRequest& request) {
  if (request.threads < 1 || request.threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads is ", request.threads, "; give 1 to ", kMaxThreads));
  }
  OPTFARM_RETURN_IF_ERROR(CheckLimits(request.timed));
  return request.traced ? CheckLimits(*request.traced) : absl::OkStatus();
}

std::string SecondsText(absl::Duration duration) {
  return duration == absl::InfiniteDuration()
             ? "-1"
             : absl::StrFormat("%g", absl::ToDoubleSeconds(duration));
}

// The line that opens a phase.
std::string PhaseText(const RunLimits& limits, bool traced,
                      absl::Duration delay) {
  std::string text = "Running benchmark for ";
  if (HasLeast(limits)) {
    absl::StrAppend(&text, "at least ", limits.min_runs,
                    " iterations and at least ", SecondsText(limits.min_time),
                    " seconds, ");
  }
  return absl::StrCat(text, "max ", limits.max_runs > 0 ? limits.max_runs : -1,
                      " iterations, max ", SecondsText(limits.max_time),
                      " seconds ", traced ? "with" : "without",
                      " detailed stat logging, with ",
                      delay > absl::ZeroDuration() ? SecondsText(delay) : "-1",
                      "s sleep between inferences");
}

int64_t Mean(const Stat& stat) {
  return stat.empty() ? 0 : stat.sum() / stat.count();
}

class ModelRunner {
 public:
  explicit ModelRunner(const ModelBenchmarkRequest& request)
      : request_(request) {
    result_.profile = StatSummarizer(request.profile);
  }

  absl::StatusOr<ModelBenchmark> Run() &&;

 private:
  absl::Status Load();
  absl::Status MeasurePhases();
  // `micros` may be null.
  absl::Status RunPhase(const RunLimits& limits, bool traced, Stat* stat,
                        std::vector<double>* micros);
  absl::Status RunTraced();
  void KeepTrace(runtime::RunTrace trace);
  void Log(absl::string_view line) const {
    if (request_.log) request_.log(line);
  }
  static void Sleep(absl::Duration delay) {
    if (delay > absl::ZeroDuration()) absl::SleepFor(delay);
  }

  const ModelBenchmarkRequest& request_;
  ModelBenchmark result_;
  LoadedVariant loaded_;
  // For the measurement's own profile.
  std::vector<runtime::RunTrace> first_traces_;
};

absl::Status ModelRunner::Load() {
  BenchmarkRequest load;
  load.input_files = request_.input_files;
  load.input_ranges = request_.input_ranges;
  load.processors = request_.processors;
  load.seed = request_.seed;
  load.count_flops = true;
  load.explain_fusions = request_.explain_fusions;
  OPTFARM_ASSIGN_OR_RETURN(loaded_,
                           LoadVariant(request_.model, load, request_.threads));
  result_.load_time = loaded_.load_time;
  result_.flops = std::move(loaded_.flops);
  result_.fused_nodes = std::move(loaded_.fused_nodes);
  if (!loaded_.inputs.empty()) {
    result_.first_input_bytes = loaded_.inputs[0].TotalBytes();
  }
  Log(absl::StrCat("Initialized session in ",
                   absl::ToDoubleSeconds(loaded_.load_time), "s"));
  return absl::OkStatus();
}

void ModelRunner::KeepTrace(runtime::RunTrace trace) {
  result_.profile.AddRun(trace);
  if (static_cast<int64_t>(result_.traces.size()) < request_.kept_traces) {
    result_.traces.push_back(trace);
  }
  if (first_traces_.size() < kMeasurementTraces) {
    first_traces_.push_back(std::move(trace));
  }
}

absl::Status ModelRunner::RunPhase(const RunLimits& limits, bool traced,
                                   Stat* stat, std::vector<double>* micros) {
  Log(PhaseText(limits, traced, request_.run_delay));
  absl::Duration spent;
  while (!IsEnough(limits, stat->count(), spent)) {
    runtime::RunTrace trace;
    const absl::Time start = absl::Now();
    const auto outputs =
        loaded_.session->Run(loaded_.inputs, traced ? &trace : nullptr);
    const absl::Duration run = absl::Now() - start;
    if (!outputs.ok()) {
      return Annotate(outputs.status(),
                      absl::StrCat("run ", stat->count() + 1,
                                   traced ? " with tracing" : ""));
    }
    spent += run;
    stat->Add(absl::ToInt64Microseconds(run));
    if (micros != nullptr) micros->push_back(absl::ToDoubleMicroseconds(run));
    if (traced) KeepTrace(std::move(trace));
    Sleep(request_.run_delay);
  }
  Log(stat->ToString());
  Log("");
  return absl::OkStatus();
}

absl::Status ModelRunner::MeasurePhases() {
  v1::Measurement& m = result_.measurement;
  const bool peak_known = ResetPeakResident();
  OPTFARM_RETURN_IF_ERROR(Load());
  m.set_inputs_fed(loaded_.inputs_fed);
  m.set_load_us(absl::ToDoubleMicroseconds(loaded_.load_time));
  if (request_.warmup_runs > 0) {
    RunLimits warmup;
    warmup.max_runs = request_.warmup_runs;
    warmup.max_time = absl::InfiniteDuration();
    OPTFARM_RETURN_IF_ERROR(RunPhase(warmup, false, &result_.warmup, nullptr));
    m.set_first_us(static_cast<double>(result_.warmup.first()));
    m.set_warmup_runs(static_cast<int>(result_.warmup.count()));
  }
  Sleep(request_.phase_delay);
  const v1::Environment before = ReadEnvironment(request_.build_version);
  const absl::Time taken_at = absl::Now();
  std::vector<double> micros;
  OPTFARM_RETURN_IF_ERROR(
      RunPhase(request_.timed, false, &result_.timed, &micros));
  if (request_.warmup_runs <= 0) m.set_first_us(micros[0]);
  if (peak_known) m.set_peak_memory_bytes(PeakResidentBytes());
  FillTimes(micros, taken_at, before, ReadEnvironment(request_.build_version),
            &m);
  return RunTraced();
}

absl::Status ModelRunner::RunTraced() {
  if (!request_.traced) return absl::OkStatus();
  Sleep(request_.phase_delay);
  OPTFARM_RETURN_IF_ERROR(
      RunPhase(*request_.traced, true, &result_.traced, nullptr));
  FillProfile(first_traces_, &result_.measurement);
  return absl::OkStatus();
}

absl::StatusOr<ModelBenchmark> ModelRunner::Run() && {
  v1::Measurement& m = result_.measurement;
  m.set_variant(request_.model.name);
  m.set_threads(request_.threads);
  m.set_device(request_.device);
  OPTFARM_RETURN_IF_ERROR(FillModelFile(request_.model.graph_path, &m));
  const ScopedCpus affinity(request_.processors);
  OPTFARM_RETURN_IF_ERROR(affinity.status());
  std::optional<MemorySampler> sampler;
  if (request_.memory_check_interval > absl::ZeroDuration()) {
    sampler.emplace(request_.memory_check_interval);
  }
  OPTFARM_RETURN_IF_ERROR(MeasurePhases());
  if (sampler) result_.sampled_peak_bytes = sampler->Stop();
  Log(absl::StrCat("Average inference timings in us: Warmup: ",
                   Mean(result_.warmup), ", no stats: ", Mean(result_.timed),
                   ", with stats: ", Mean(result_.traced)));
  return std::move(result_);
}

double InSeconds(const Stat& micros) {
  return static_cast<double>(micros.sum()) * 1e-6;
}

}  // namespace

bool IsEnough(const RunLimits& limits, int64_t runs, absl::Duration spent) {
  if (limits.max_runs > 0 && runs >= limits.max_runs) return true;
  if (runs > 0 && spent >= limits.max_time) return true;
  return HasLeast(limits) && runs >= limits.min_runs &&
         spent >= limits.min_time;
}

absl::StatusOr<ModelBenchmark> RunModelBenchmark(
    const ModelBenchmarkRequest& request) {
  OPTFARM_RETURN_IF_ERROR(Check(request));
  return ModelRunner(request).Run();
}

absl::Status WriteReports(const ModelBenchmark& result,
                          absl::string_view prefix, absl::string_view name) {
  const double load = absl::ToDoubleSeconds(result.load_time);
  const double timed = InSeconds(result.timed);
  const double megabytes = static_cast<double>(result.first_input_bytes) *
                           static_cast<double>(result.timed.count()) * 1e-6;
  std::vector<ReportEntry> entries = {
      {"", result.timed.count(), timed, timed > 0 ? megabytes / timed : -1},
      {"meta-init", 1, load}};
  if (!result.warmup.empty()) {
    entries.push_back({"meta-first-inference", result.warmup.count(),
                       InSeconds(result.warmup)});
    entries.push_back({"meta-init-plus-first-inference", 1,
                       load + result.warmup.avg() * 1e-6});
  }
  const int64_t traced = result.traced.count();
  for (const TypeStats& type : result.profile.Types()) {
    entries.push_back(
        {type.op, traced, static_cast<double>(type.micros * traced) * 1e-6});
  }
  return WriteReportFiles(prefix, name, entries);
}

}  // namespace optfarm::benchmark
