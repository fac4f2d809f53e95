#include "client_cli/command/benchmark_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "client_cli/command/command.h"
#include "engine/benchmark/affinity.h"
#include "engine/benchmark/environment.h"

namespace optfarm::client_cli {

absl::StatusOr<std::vector<int>> ParseThreads(const std::string& text) {
  std::vector<int> threads;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int count = 0;
    if (!absl::SimpleAtoi(part, &count)) {
      return UsageError(absl::StrCat(
          "--num_threads: '", text,
          "' is not a whole number or a list of them, like 4 or 1,4"));
    }
    threads.push_back(count > 0 ? count : benchmark::UsableCores());
  }
  return threads;
}

absl::StatusOr<std::vector<int>> ParseProcessors(const std::string& text) {
  absl::StatusOr<std::vector<int>> processors = benchmark::ParseCpus(text);
  if (processors.ok()) return processors;
  return UsageError(
      absl::StrCat("--cpu_affinity: ", processors.status().message()));
}

absl::StatusOr<std::vector<std::vector<double>>> ParseValues(
    const std::string& text) {
  std::vector<std::vector<double>> lists;
  if (text.empty()) return lists;
  for (const absl::string_view list : absl::StrSplit(text, ':')) {
    std::vector<double>& values = lists.emplace_back();
    for (const absl::string_view part :
         absl::StrSplit(list, ',', absl::SkipEmpty())) {
      if (!absl::SimpleAtod(part, &values.emplace_back())) {
        return UsageError(absl::StrCat("--input_layer_values: '",
                                       std::string(part), "' is not a number"));
      }
    }
  }
  return lists;
}

absl::StatusOr<std::vector<benchmark::BenchmarkInputFile>> ParseValueFiles(
    const std::string& text) {
  std::vector<benchmark::BenchmarkInputFile> files;
  for (const absl::string_view item :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    // The last colon: names of tensors end in a port.
    const size_t colon = item.rfind(':');
    if (colon == 0 || colon >= item.size() - 1) {
      return UsageError(absl::StrCat("--input_layer_value_files: '",
                                     std::string(item),
                                     "' is not of the form NAME:FILE"));
    }
    files.push_back({std::string(item.substr(0, colon)),
                     ExpandHome(std::string(item.substr(colon + 1)))});
  }
  return files;
}

absl::StatusOr<std::vector<benchmark::BenchmarkInputRange>> ParseValueRanges(
    const std::string& text) {
  std::vector<benchmark::BenchmarkInputRange> ranges;
  for (const absl::string_view item :
       absl::StrSplit(text, ':', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(item, ',');
    benchmark::BenchmarkInputRange& range = ranges.emplace_back();
    if (parts.size() != 3 || parts[0].empty() ||
        !absl::SimpleAtod(parts[1], &range.low) ||
        !absl::SimpleAtod(parts[2], &range.high)) {
      return UsageError(absl::StrCat("--input_layer_value_range: '",
                                     std::string(item),
                                     "' is not of the form NAME,LOW,HIGH"));
    }
    range.input = parts[0];
  }
  return ranges;
}

}  // namespace optfarm::client_cli
