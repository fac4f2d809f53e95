// Measures what an app waits for before its first answer: loading a model,
// making a session, the first run; once from a frozen graph and once from a
// memory-mapped package of the same model. Times are this process's CPU time,
// the median of several rounds, each with a model of its own. Memory is the
// most that a process which does nothing else has resident after three runs,
// and what it had when it began; once as a session is by default, once with the
// limit of packed weights, for which the time of a run is told as well: the
// two sessions take turns.
//
//   load_bench                              resnet50_v1, 103 MB of weights
//   load_bench --model=mobilenet_v1 --rounds=20 --keep=0.5

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
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
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/memmapped_package.h"
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

absl::StatusOr<api::Tensor> MakeInput(const Ends& model) {
  std::vector<int64_t> dims;
  for (const absl::string_view dim : absl::StrSplit(model.input_shape, ',')) {
    dims.push_back(std::max(std::stoll(std::string(dim)), 1ll));
  }
  auto input = api::Tensor::Zeros(OPTFARM_FLOAT, dims);
  if (!input.ok()) return ToStatus(input.status());
  return *std::move(input);
}

// `limit`: of packed weights; 0 for none. UNITS: bytes.
absl::StatusOr<api::Session> MakeSession(const api::Model& model,
                                         const Ends& ends, int64_t limit) {
  api::SessionOptions options;
  options.packed_weights_limit_bytes = limit;
  auto session =
      api::Session::Create(model, {ends.input}, {ends.output}, options);
  if (!session.ok()) return ToStatus(session.status());
  return *std::move(session);
}

absl::StatusOr<Phases> MeasureOnce(const std::string& path, const Ends& model,
                                   int64_t limit, int runs) {
  Phases phases;
  OPTFARM_ASSIGN_OR_RETURN(const api::Tensor input, MakeInput(model));
  double start = CpuMillis();
  const auto loaded = api::Model::Load(path);
  if (!loaded.ok()) return ToStatus(loaded.status());
  phases.load = CpuMillis() - start;

  start = CpuMillis();
  OPTFARM_ASSIGN_OR_RETURN(const api::Session session,
                           MakeSession(*loaded, model, limit));
  phases.session = CpuMillis() - start;

  start = CpuMillis();
  const auto outputs = session.Run(input);
  if (!outputs.ok()) return ToStatus(outputs.status());
  phases.first_run = CpuMillis() - start;
  for (int i = 1; i < runs; ++i) {
    const auto more = session.Run(input);
    if (!more.ok()) return ToStatus(more.status());
  }
  return phases;
}

// How many times longer a run takes with the limit than without: the median of
// rounds in which both take their turn.
absl::StatusOr<double> MeasureSlowdown(const std::string& path,
                                       const Ends& ends, int64_t limit,
                                       int rounds) {
  OPTFARM_ASSIGN_OR_RETURN(const api::Tensor input, MakeInput(ends));
  std::vector<api::Session> sessions;
  for (const int64_t of : {int64_t{0}, limit}) {
    // What one has packed the other would use.
    const auto model = api::Model::Load(path);
    if (!model.ok()) return ToStatus(model.status());
    OPTFARM_ASSIGN_OR_RETURN(api::Session session,
                             MakeSession(*model, ends, of));
    sessions.push_back(std::move(session));
  }
  std::vector<double> ratios;
  for (int i = -2; i < rounds; ++i) {
    double seconds[2];
    for (int k = 0; k < 2; ++k) {
      const auto start = std::chrono::steady_clock::now();
      const auto outputs = sessions[k].Run(input);
      if (!outputs.ok()) return ToStatus(outputs.status());
      seconds[k] = std::chrono::duration<double>(
                       std::chrono::steady_clock::now() - start)
                       .count();
    }
    if (i >= 0) ratios.push_back(seconds[1] / seconds[0]);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[ratios.size() / 2];
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
absl::Status PrintResident(const std::string& path, const Ends& model,
                           int64_t limit) {
  const double before = MostResident();
  constexpr int kRuns = 3;
  OPTFARM_RETURN_IF_ERROR(MeasureOnce(path, model, limit, kRuns).status());
  std::printf("%.1f %.1f\n", before, MostResident());
  return absl::OkStatus();
}

// Runs this program as above. UNITS: megabytes.
absl::Status MeasureResident(const std::string& path, const Ends& model,
                             int64_t limit, double* before, double* after) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
  if (length <= 0) return absl::UnavailableError("no /proc/self/exe");
  const std::string command = absl::StrCat(
      "'", absl::string_view(self, static_cast<size_t>(length)), "' --file='",
      path, "' --input=", model.input, " --output=", model.output,
      " --shape=", model.input_shape, " --limit=", limit);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::UnavailableError("no process");
  const int count = std::fscanf(pipe, "%lf %lf", before, after);
  return pclose(pipe) == 0 && count == 2
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat("failed: ", command));
}

absl::Status Measure(const char* kind, const std::string& path,
                     const Ends& model, int count, double keep) {
  std::vector<Phases> rounds;
  for (int i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(rounds.emplace_back(),
                             MeasureOnce(path, model, 0, 1));
  }
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  const double load = MedianOf(rounds, &Phases::load);
  const double session = MedianOf(rounds, &Phases::session);
  double before = 0, after = 0, limited = 0;
  OPTFARM_RETURN_IF_ERROR(MeasureResident(path, model, 0, &before, &after));
  const auto limit = static_cast<int64_t>(keep * static_cast<double>(size));
  OPTFARM_RETURN_IF_ERROR(
      MeasureResident(path, model, limit, &before, &limited));
  OPTFARM_ASSIGN_OR_RETURN(const double slowdown,
                           MeasureSlowdown(path, model, limit, count));
  std::printf(
      "%-14s %8.1f MB %9.2f %9.2f %9.2f %11.2f %9.1f MB %7.1f MB %7.1f MB "
      "%8.3f\n",
      kind, static_cast<double>(size) * 1e-6, load, session, load + session,
      MedianOf(rounds, &Phases::first_run), before, after, limited, slowdown);
  return absl::OkStatus();
}

absl::Status Run(const std::string& name, int rounds, double keep) {
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
  std::printf(
      "%s, median of %d rounds, CPU milliseconds; limit: %.0f %% of the file\n",
      name.c_str(), rounds, keep * 100);
  std::printf("%-14s %11s %9s %9s %9s %11s %12s %10s %10s %8s\n", "file",
              "size", "load", "session", "together", "first run", "at first",
              "at most", "limited", "slower");
  OPTFARM_RETURN_IF_ERROR(Measure("frozen graph", frozen, ends, rounds, keep));
  return Measure("memory-mapped", mapped, ends, rounds, keep);
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) {
  std::string model = "resnet50_v1";
  int rounds = 11;
  double keep = 0.75;
  int64_t limit = 0;
  std::string file;
  optfarm::bench::Ends ends;
  CLI::App app("What an app waits for before its first answer.");
  app.add_option("--model", model, "mobilenet_v1, resnet50_v1, inception_v3");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  app.add_option("--keep", keep,
                 "of the file's size, as limit of packed weights")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--limit", limit, "of --file's packed weights, in bytes");
  app.add_option("--file", file, "prints the memory of this file's run alone");
  app.add_option("--input", ends.input, "of --file");
  app.add_option("--output", ends.output, "of --file");
  app.add_option("--shape", ends.input_shape, "of --file's input");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      file.empty() ? optfarm::bench::Run(model, rounds, keep)
                   : optfarm::bench::PrintResident(file, ends, limit);
  if (!status.ok()) {
    std::fprintf(stderr, "load_bench: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
}
