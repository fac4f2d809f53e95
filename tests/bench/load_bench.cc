// Measures what an app waits for before its first answer: loading a model,
// making a session, the first run; once from a frozen graph and once from a
// memory-mapped package of the same model. Times are this process's CPU time,
// the median of several rounds, each with a model of its own. Memory is the
// most that a process which does nothing else has resident after three runs,
// and what it had when it began.
//
//   load_bench                              resnet50_v1, 103 MB of weights
//   load_bench --model=mobilenet_v1 --rounds=20

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/api/runtime.h"
#include "engine/formats/graph_file.h"
#include "engine/formats/memmapped_package.h"
#include "tests/bench/full_size_models.h"

namespace optfarm::bench {
namespace {

// As convert_graphdef_memmapped_format has it. UNITS: bytes.
constexpr int64_t kMinRegionBytes = 10'000;

// UNITS: milliseconds of this process, all threads.
double CpuMillis() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 +
         static_cast<double>(now.tv_nsec) * 1e-6;
}

struct Phases {
  double load = 0;
  double session = 0;
  double first_run = 0;
};

absl::Status ToStatus(const api::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.code()),
                      status.message());
}

// How to run a model.
struct Ends {
  std::string input;
  std::string output;
  std::string input_shape;
};

absl::StatusOr<Phases> MeasureOnce(const std::string& path, const Ends& model,
                                   int runs) {
  Phases phases;
  std::vector<int64_t> dims;
  for (const absl::string_view dim : absl::StrSplit(model.input_shape, ',')) {
    dims.push_back(std::max(std::stoll(std::string(dim)), 1ll));
  }
  const auto input = api::Tensor::Zeros(OPTFARM_FLOAT, dims);
  if (!input.ok()) return ToStatus(input.status());

  double start = CpuMillis();
  const auto loaded = api::Model::Load(path);
  if (!loaded.ok()) return ToStatus(loaded.status());
  phases.load = CpuMillis() - start;

  start = CpuMillis();
  const auto session =
      api::Session::Create(*loaded, {model.input}, {model.output});
  if (!session.ok()) return ToStatus(session.status());
  phases.session = CpuMillis() - start;

  start = CpuMillis();
  const auto outputs = session->Run(*input);
  if (!outputs.ok()) return ToStatus(outputs.status());
  phases.first_run = CpuMillis() - start;
  for (int i = 1; i < runs; ++i) {
    const auto more = session->Run(*input);
    if (!more.ok()) return ToStatus(more.status());
  }
  return phases;
}

double MedianOf(std::vector<Phases> rounds, double Phases::*phase) {
  std::sort(rounds.begin(), rounds.end(),
            [phase](const Phases& a, const Phases& b) {
              return a.*phase < b.*phase;
            });
  return rounds[rounds.size() / 2].*phase;
}

// UNITS: megabytes, so far.
double MostResident() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1e-3 * 1.024;
}

// What a process of its own does: "before after" on standard output.
absl::Status PrintResident(const std::string& path, const Ends& model) {
  const double before = MostResident();
  constexpr int kRuns = 3;
  OPTFARM_RETURN_IF_ERROR(MeasureOnce(path, model, kRuns).status());
  std::printf("%.1f %.1f\n", before, MostResident());
  return absl::OkStatus();
}

// Runs this program as above. UNITS: megabytes.
absl::Status MeasureResident(const std::string& path, const Ends& model,
                             double* before, double* after) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return absl::UnavailableError("no /proc/self/exe");
  const std::string command =
      absl::StrCat("'", absl::string_view(self, static_cast<size_t>(length)),
                   "' --file='", path, "' --input=", model.input,
                   " --output=", model.output, " --shape=", model.input_shape);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::UnavailableError("no process");
  const int count = std::fscanf(pipe, "%lf %lf", before, after);
  return pclose(pipe) == 0 && count == 2
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat("failed: ", command));
}

absl::Status Measure(const char* kind, const std::string& path,
                     const Ends& model, int count) {
  std::vector<Phases> rounds;
  for (int i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(rounds.emplace_back(),
                             MeasureOnce(path, model, 1));
  }
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  const double load = MedianOf(rounds, &Phases::load);
  const double session = MedianOf(rounds, &Phases::session);
  double before = 0, after = 0;
  OPTFARM_RETURN_IF_ERROR(MeasureResident(path, model, &before, &after));
  std::printf("%-14s %8.1f MB %9.2f %9.2f %9.2f %11.2f %9.1f MB %7.1f MB\n",
              kind, static_cast<double>(size) * 1e-6, load, session,
              load + session, MedianOf(rounds, &Phases::first_run), before,
              after);
  return absl::OkStatus();
}

absl::Status Run(const std::string& name, int rounds) {
  OPTFARM_ASSIGN_OR_RETURN(FullSizeModel model, MakeFullSizeModel(name));
  const Ends ends = {model.input, model.output, model.input_shape};
  OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                           MakeTemporaryFolder("load_bench"));
  const ScopedFolder scoped(folder);
  const std::string frozen = JoinPath(folder, "model.pb");
  const std::string mapped = JoinPath(folder, "model.mmap");
  OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(model.graph, frozen));
  {
    OPTFARM_ASSIGN_OR_RETURN(
        const formats::MemmappedBytes package,
        formats::SerializeMemmapped(std::move(model.graph), kMinRegionBytes));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(mapped, package.bytes));
  }
  std::printf("%s, median of %d rounds, CPU milliseconds\n", name.c_str(),
              rounds);
  std::printf("%-14s %11s %9s %9s %9s %11s %12s %10s\n", "file", "size", "load",
              "session", "together", "first run", "at first", "at most");
  OPTFARM_RETURN_IF_ERROR(Measure("frozen graph", frozen, ends, rounds));
  return Measure("memory-mapped", mapped, ends, rounds);
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) {
  std::string model = "resnet50_v1";
  int rounds = 11;
  std::string file;
  optfarm::bench::Ends ends;
  CLI::App app("What an app waits for before its first answer.");
  app.add_option("--model", model, "mobilenet_v1, resnet50_v1, inception_v3");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--file", file, "prints the memory of this file's run alone");
  app.add_option("--input", ends.input, "of --file");
  app.add_option("--output", ends.output, "of --file");
  app.add_option("--shape", ends.input_shape, "of --file's input");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = file.empty()
                                  ? optfarm::bench::Run(model, rounds)
                                  : optfarm::bench::PrintResident(file, ends);
  if (!status.ok()) {
    std::fprintf(stderr, "load_bench: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
}
