// Measures one graph the way TensorFlow's benchmark_model does: warm-up, timed
// runs without tracing, traced runs, each told in that tool's words. For
// comparing variants use benchmark.h, whose turns share the machine's drift.

#ifndef OPTFARM_ENGINE_BENCHMARK_MODEL_BENCHMARK_H_
#define OPTFARM_ENGINE_BENCHMARK_MODEL_BENCHMARK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/benchmark/benchmark_request.h"
#include "engine/benchmark/flops.h"
#include "engine/benchmark/stat.h"
#include "engine/benchmark/stat_summarizer.h"
#include "engine/runtime/session/session.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// When a phase has run enough. The run that passes a limit is the last one.
struct RunLimits {
  // The most; 0 runs, or an infinite time: no such limit.
  int64_t max_runs = 1000;
  absl::Duration max_time = absl::Seconds(10);
  // The phase also ends once both of these are met, unless both are zero.
  int64_t min_runs = 0;
  absl::Duration min_time;
};

// True when a phase that did `runs` in `spent` is to end.
bool IsEnough(const RunLimits& limits, int64_t runs, absl::Duration spent);

struct ModelBenchmarkRequest {
  BenchmarkVariant model;
  int threads = 1;
  int64_t warmup_runs = 1;
  RunLimits timed;
  // Traced runs after the timed ones; absent: no profile.
  std::optional<RunLimits> traced = RunLimits();
  // Sleeps between runs and between phases; none when not above zero.
  absl::Duration run_delay;
  absl::Duration phase_delay;
  // Inputs without values or a file get seeded random ones.
  std::vector<BenchmarkInputFile> input_files;
  std::vector<BenchmarkInputRange> input_ranges;
  // Processors that the benchmark runs on, this thread included, as long as it
  // runs; empty: all.
  std::vector<int> processors;
  // How often memory is looked at; zero: not at all.
  absl::Duration memory_check_interval;
  uint64_t seed = 1;
  // Lists in ModelBenchmark::fused_nodes which fusions took which nodes.
  bool explain_fusions = false;
  // Traces kept for a trace file.
  int64_t kept_traces = 0;
  StatSummarizerOptions profile;
  std::string device;
  std::string build_version;
  // Receives each line as it happens, without newline; empty: nobody.
  std::function<void(absl::string_view line)> log;
};

struct ModelBenchmark {
  v1::Measurement measurement;
  // UNITS: microseconds a run.
  Stat warmup;
  Stat timed;
  Stat traced;
  absl::Duration load_time;
  StatSummarizer profile;
  std::vector<runtime::RunTrace> traces;
  FlopCount flops;
  // Empty unless the request asks for it.
  std::vector<runtime::FusedNodes> fused_nodes;
  // UNITS: bytes of the first input; 0 without inputs.
  int64_t first_input_bytes = 0;
  // UNITS: bytes of this process's memory at the most that was seen, from
  // before the graph was loaded to after the last run; 0 when nobody looked.
  int64_t sampled_peak_bytes = 0;
};

// ERRORS: InvalidArgument for limits that never end a phase and numbers out of
// range; those of loading and running the graph.
absl::StatusOr<ModelBenchmark> RunModelBenchmark(
    const ModelBenchmarkRequest& request);

// Writes benchmark_model's report files: the model, its load, its first run,
// both together, and each op type.
// ERRORS: AlreadyExists when one of the files is there; those of writing.
absl::Status WriteReports(const ModelBenchmark& result,
                          absl::string_view prefix, absl::string_view name);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_MODEL_BENCHMARK_H_
