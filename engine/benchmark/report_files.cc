#include "engine/benchmark/report_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "tensorflow/core/util/test_log.pb.h"

namespace optfarm::benchmark {
namespace {

std::string NameOf(absl::string_view benchmark, const ReportEntry& entry) {
  return absl::StrCat(benchmark, entry.part.empty() ? "" : "_", entry.part);
}

std::string PathOf(absl::string_view prefix, absl::string_view name) {
  return absl::StrCat(prefix, absl::StrReplaceAll(name, {{"/", "__"}}));
}

std::string Serialize(const std::string& name, const ReportEntry& entry) {
  const auto runs = static_cast<double>(std::max<int64_t>(entry.runs, 1));
  tensorflow::BenchmarkEntries entries;
  tensorflow::BenchmarkEntry* written = entries.add_entry();
  written->set_name(name);
  written->set_iters(entry.runs);
  // The mark for "not measured" is shared among the runs as a time would be.
  written->set_cpu_time(-1 / runs);
  written->set_wall_time(entry.total_seconds / runs);
  written->set_throughput(entry.throughput);
  return entries.SerializeAsString();
}

}  // namespace

absl::Status WriteReportFiles(absl::string_view prefix,
                              absl::string_view benchmark,
                              absl::Span<const ReportEntry> entries) {
  for (const ReportEntry& entry : entries) {
    const std::string path = PathOf(prefix, NameOf(benchmark, entry));
    if (Exists(path)) {
      return absl::AlreadyExistsError(
          absl::StrCat("cannot write the benchmark's report: file exists: '",
                       path, "'; remove it or give another --output_prefix"));
    }
  }
  for (const ReportEntry& entry : entries) {
    const std::string name = NameOf(benchmark, entry);
    OPTFARM_RETURN_IF_ERROR(
        WriteFileAtomically(PathOf(prefix, name), Serialize(name, entry)));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::benchmark
