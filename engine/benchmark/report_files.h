// The report files of TensorFlow's benchmark_model: one binary BenchmarkEntries
// for each measured part.

#ifndef OPTFARM_ENGINE_BENCHMARK_REPORT_FILES_H_
#define OPTFARM_ENGINE_BENCHMARK_REPORT_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::benchmark {

struct ReportEntry {
  // "" for the whole model, else "meta-init", an op type, ...: the entry is
  // named "<benchmark>_<part>".
  std::string part;
  int64_t runs = 0;
  // UNITS: seconds of all runs together.
  double total_seconds = 0;
  // UNITS: megabytes a second; -1: not measured.
  double throughput = -1;
};

// Writes each entry to "<prefix><name>", where '/' in the name becomes "__".
// ERRORS: AlreadyExists, before anything is written, when one of the files is
// there; those of writing a file.
absl::Status WriteReportFiles(absl::string_view prefix,
                              absl::string_view benchmark,
                              absl::Span<const ReportEntry> entries);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_REPORT_FILES_H_
