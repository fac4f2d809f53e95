// How `optctl graph benchmark` shows what it measured: tables and lines for
// people, JSON for programs.

#ifndef OPTFARM_CLIENT_CLI_TABLES_BENCHMARK_TEXT_H_
#define OPTFARM_CLIENT_CLI_TABLES_BENCHMARK_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "client_cli/tables/table.h"
#include "engine/benchmark/flops.h"
#include "engine/benchmark/model_benchmark.h"

namespace optfarm::client_cli {

// One row for each: load, first run, statistics, memory, noise.
Table MakeLatencyTable(
    const std::vector<benchmark::ModelBenchmark>& benchmarks);

// The two lines that TensorFlow's benchmark_model prints.
std::string FlopsLines(const benchmark::ModelBenchmark& benchmark);

// The operations of each op type; its rows sum up to the whole.
Table MakeFlopsTable(const benchmark::FlopCount& count);

// Which fusions took which nodes, and what they became: a table of the steps
// that fusions made or changed, in that order, and what each fusion does.
std::string FusionText(const std::vector<runtime::FusedNodes>& fused);

// How fast a device of `gflops` billion operations a second can be at best.
std::string DeviceEstimate(const benchmark::FlopCount& count, double gflops);

// One object for each: Measurement's fields, and "timings", "profile" (by node
// and by op type), "flops", "fusions" unless there are none, and
// "device_estimate" when `gflops` is given.
std::string BenchmarksToJson(
    const std::vector<benchmark::ModelBenchmark>& benchmarks,
    std::optional<double> gflops);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_TABLES_BENCHMARK_TEXT_H_
