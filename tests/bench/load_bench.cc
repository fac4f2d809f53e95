// Measures what an app waits for before its first answer: loading a model,
// making a session, the first run; once from a frozen graph and once from a
// memory-mapped package of the same model. Times are this process's CPU time,
// the median of several rounds, each with a model of its own.
//
//   load_bench                              resnet50_v1, 103 MB of weights
//   load_bench --model=mobilenet_v1 --rounds=20

#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

absl::StatusOr<Phases> MeasureOnce(const std::string& path,
                                   const FullSizeModel& model) {
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
  return phases;
}

double MedianOf(std::vector<Phases> rounds, double Phases::*phase) {
  std::sort(rounds.begin(), rounds.end(),
            [phase](const Phases& a, const Phases& b) {
              return a.*phase < b.*phase;
            });
  return rounds[rounds.size() / 2].*phase;
}

absl::Status Measure(const char* kind, const std::string& path,
                     const FullSizeModel& model, int count) {
  std::vector<Phases> rounds;
  for (int i = 0; i < count; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(rounds.emplace_back(), MeasureOnce(path, model));
  }
  OPTFARM_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  const double load = MedianOf(rounds, &Phases::load);
  const double session = MedianOf(rounds, &Phases::session);
  std::printf("%-14s %8.1f MB %9.2f %9.2f %9.2f %11.2f\n", kind,
              static_cast<double>(size) * 1e-6, load, session, load + session,
              MedianOf(rounds, &Phases::first_run));
  return absl::OkStatus();
}

absl::Status Run(const std::string& name, int rounds) {
  OPTFARM_ASSIGN_OR_RETURN(const FullSizeModel model, MakeFullSizeModel(name));
  OPTFARM_ASSIGN_OR_RETURN(const std::string folder,
                           MakeTemporaryFolder("load_bench"));
  const ScopedFolder scoped(folder);
  const std::string frozen = JoinPath(folder, "model.pb");
  const std::string mapped = JoinPath(folder, "model.mmap");
  OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(model.graph, frozen));
  {
    OPTFARM_ASSIGN_OR_RETURN(
        const formats::MemmappedBytes package,
        formats::SerializeMemmapped(model.graph, kMinRegionBytes));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(mapped, package.bytes));
  }
  std::printf("%s, median of %d rounds, CPU milliseconds\n", name.c_str(),
              rounds);
  std::printf("%-14s %11s %9s %9s %9s %11s\n", "file", "size", "load",
              "session", "together", "first run");
  OPTFARM_RETURN_IF_ERROR(Measure("frozen graph", frozen, model, rounds));
  return Measure("memory-mapped", mapped, model, rounds);
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) {
  std::string model = "resnet50_v1";
  int rounds = 11;
  CLI::App app("What an app waits for before its first answer.");
  app.add_option("--model", model, "mobilenet_v1, resnet50_v1, inception_v3");
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = optfarm::bench::Run(model, rounds);
  if (!status.ok()) {
    std::fprintf(stderr, "load_bench: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
}
