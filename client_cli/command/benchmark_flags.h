// Values of benchmark_model's flags that are lists.

#ifndef OPTFARM_CLIENT_CLI_COMMAND_BENCHMARK_FLAGS_H_
#define OPTFARM_CLIENT_CLI_COMMAND_BENCHMARK_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/benchmark/benchmark.h"

namespace optfarm::client_cli {

// All return UsageError naming the flag for text that is not of its form; an
// empty text is an empty list.

// "1,4"; "-1" or any number below 1: all processors.
absl::StatusOr<std::vector<int>> ParseThreads(const std::string& text);
// "0,2": numbers of processors; "big": those with the highest top frequency.
absl::StatusOr<std::vector<int>> ParseProcessors(const std::string& text);
// "1,2:3": the first values of each input.
absl::StatusOr<std::vector<std::vector<double>>> ParseValues(
    const std::string& text);
// "image:a.npy,mask:b.raw".
absl::StatusOr<std::vector<benchmark::BenchmarkInputFile>> ParseValueFiles(
    const std::string& text);
// "image,0,255:mask,0,1".
absl::StatusOr<std::vector<benchmark::BenchmarkInputRange>> ParseValueRanges(
    const std::string& text);

}  // namespace optfarm::client_cli

#endif  // OPTFARM_CLIENT_CLI_COMMAND_BENCHMARK_FLAGS_H_
