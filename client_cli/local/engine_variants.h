// Runtimes that the user ships, beside Optfarm's, in benchmarks on this
// machine: flag --engine of run and graph benchmark.

#ifndef OPTFARM_CLIENT_CLI_LOCAL_ENGINE_VARIANTS_H_
#define OPTFARM_CLIENT_CLI_LOCAL_ENGINE_VARIANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client_cli/command/command.h"
#include "client_cli/tables/table.h"
#include "engine/benchmark/benchmark.h"
#include "engine/benchmark/benchmark_request.h"
#include "engine/benchmark/engine_process.h"
#include "engine/benchmark/model_benchmark.h"
#include "optfarm/v1/jobs.pb.h"

namespace optfarm::client_cli {

inline constexpr char kEngineHelp[] =
    "Also measure with this runtime, loaded from its shared library: "
    "onnxruntime:FILE or tflite:FILE. Repeatable.";

// ERRORS: marked kUsage; benchmark::ParseEngine's.
absl::StatusOr<std::vector<benchmark::EngineOptions>> ParseEngineFlags(
    const std::vector<std::string>& values);

// The format that an engine's models have. REQUIRES: it is a known engine.
v1::ModelFormat FormatOfEngine(absl::string_view engine);

// Adds the engines' formats to those that a job writes; the graph itself, where
// nothing was asked for, so that a job does not fail where a file cannot be
// written.
void AddEngineFormats(const std::vector<benchmark::EngineOptions>& engines,
                      std::vector<v1::ModelFormat>* formats);

// Whether the name of the file ends as an engine's models do.
bool IsModelOfEngine(absl::string_view engine, absl::string_view path);

// "int8@onnxruntime": the file in that engine, to be compared with `same_as`.
// ERRORS: those of starting the engine.
absl::StatusOr<benchmark::BenchmarkVariant> EngineVariant(
    const benchmark::EngineOptions& engine, const std::string& same_as,
    const std::string& path);

struct MeasuredBeside {
  std::vector<v1::Measurement> measurements;
  std::vector<benchmark::EngineOutcome> engines;
};

// A model of the engines' format, in turns in Optfarm's runtime and in each
// engine; those limits of `request` that a comparison has no use for are left.
// ERRORS: marked kUsage for a model of another format;
// benchmark::RunBenchmark's.
absl::StatusOr<MeasuredBeside> MeasureBeside(
    const std::vector<benchmark::EngineOptions>& engines,
    const benchmark::ModelBenchmarkRequest& request,
    const std::vector<int>& threads);

// The table, the comparisons of answers and reasons to doubt the numbers.
void PrintBeside(const MeasuredBeside& measured, const CommandContext& context);

// One row a measurement, with its time relative to Optfarm's runtime.
Table MakeEngineTable(const MeasuredBeside& measured);

// A line for each comparison of answers and for each engine that failed.
std::vector<std::string> EngineRemarks(const MeasuredBeside& measured);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_LOCAL_ENGINE_VARIANTS_H_
