// Measures the float and the 8-bit chain of transforms on full-size models,
// from file to file, each run in a process of its own:
//
//   chain_bench make DIR                      writes the models (220 MB)
//   chain_bench run DIR --optctl=PATH         runs the chains on them
//
// docs/benchmarks.md says how to read the output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "base/subprocess.h"
#include "engine/benchmark/statistics.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "tests/bench/full_size_models.h"

namespace optfarm::bench {
namespace {

// What TensorFlow 1.4's transform_graph takes for the same chains on a machine
// of two cores with AVX-512.
struct Reference {
  std::string model;
  std::string chain;
  double seconds;
  double megabytes;
};

const std::vector<Reference>& References() {
  static const auto* const kAll = new std::vector<Reference>{
      {"mobilenet_v1", "fp32", 0.38, 197}, {"mobilenet_v1", "int8", 0.50, 133},
      {"resnet50_v1", "fp32", 1.92, 1035}, {"resnet50_v1", "int8", 2.84, 632},
      {"inception_v3", "fp32", 2.33, 974}, {"inception_v3", "int8", 3.11, 595},
  };
  return *kAll;
}

std::string Chain(const std::string& name, const std::string& shape) {
  const std::string strip =
      absl::StrCat("strip_unused_nodes(type=float, shape=\"", shape, "\") ");
  const std::string fold =
      "fold_constants(ignore_errors=true) fold_batch_norms "
      "fold_old_batch_norms";
  if (name == "fp32") return absl::StrCat(strip, fold);
  return absl::StrCat("add_default_attributes ", strip,
                      "remove_nodes(op=Identity, op=CheckNumerics) ", fold,
                      " quantize_weights quantize_nodes strip_unused_nodes "
                      "sort_by_execution_order");
}

std::string ModelPath(const std::string& folder, const std::string& name) {
  return JoinPath(folder, absl::StrCat(name, ".pb"));
}

absl::Status MakeModels(const std::string& folder) {
  OPTFARM_RETURN_IF_ERROR(MakeFolders(folder));
  for (const std::string& name : FullSizeModelNames()) {
    OPTFARM_ASSIGN_OR_RETURN(const FullSizeModel model,
                             MakeFullSizeModel(name));
    const std::string path = ModelPath(folder, name);
    OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(model.graph, path));
    // The names, beside it: making a model again only to know them would make
    // this process, and with it its children, large.
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(
        path + ".names", absl::StrCat(model.input, "\n", model.output, "\n",
                                      model.input_shape)));
    std::printf(
        "%s: %s, input %s [%s], output %s\n", path.c_str(),
        absl::StrCat(FileSize(path).value_or(0) / 1000000, " MB").c_str(),
        model.input.c_str(), model.input_shape.c_str(), model.output.c_str());
  }
  return absl::OkStatus();
}

struct Outcome {
  double seconds = 0;
  double cpu_seconds = 0;
  double megabytes = 0;
};

absl::StatusOr<Outcome> RunOnce(const std::vector<std::string>& argv,
                                const std::string& log) {
  SubprocessOptions options;
  options.argv = argv;
  options.output_file = log;
  const auto start = std::chrono::steady_clock::now();
  OPTFARM_ASSIGN_OR_RETURN(Subprocess child, Subprocess::Start(options));
  const std::optional<SubprocessExit> exit = child.Wait(absl::Minutes(5));
  const auto end = std::chrono::steady_clock::now();
  if (!exit.has_value() || !exit->ok()) {
    return absl::InternalError(
        absl::StrCat("the transform did not succeed: ",
                     exit.has_value() ? exit->ToString() : "took too long",
                     "; its output is in '", log, "'"));
  }
  return Outcome{std::chrono::duration<double>(end - start).count(),
                 absl::ToDoubleSeconds(exit->cpu_time),
                 static_cast<double>(exit->peak_memory_bytes) / 1e6};
}

struct Options {
  std::string folder;
  std::string optctl;
  // Where results go; best a folder in memory, so that no disk is measured.
  std::string out_folder = "/dev/shm";
  int rounds = 7;
};

absl::Status RunChain(const Reference& reference, const Options& options) {
  const std::string path = ModelPath(options.folder, reference.model);
  OPTFARM_ASSIGN_OR_RETURN(const std::string text, ReadFile(path + ".names"));
  const std::vector<std::string> names = absl::StrSplit(text, '\n');
  const std::string out = JoinPath(
      options.out_folder,
      absl::StrCat("chain_bench.", reference.model, ".", reference.chain));
  const std::string log = out + ".log";
  const std::vector<std::string> argv = {
      options.optctl,
      "graph",
      "transform",
      absl::StrCat("--in_graph=", path),
      absl::StrCat("--out_graph=", out),
      absl::StrCat("--inputs=", names[0]),
      absl::StrCat("--outputs=", names[1]),
      absl::StrCat("--transforms=", Chain(reference.chain, names[2]))};
  std::vector<double> seconds, cpu, megabytes;
  for (int round = 0; round < options.rounds; ++round) {
    OPTFARM_RETURN_IF_ERROR(RemoveAll(log));
    OPTFARM_ASSIGN_OR_RETURN(const Outcome outcome, RunOnce(argv, log));
    seconds.push_back(outcome.seconds);
    cpu.push_back(outcome.cpu_seconds);
    megabytes.push_back(outcome.megabytes);
  }
  const double input = static_cast<double>(FileSize(path).value_or(0)) / 1e6;
  const double output = static_cast<double>(FileSize(out).value_or(0)) / 1e6;
  const double median = benchmark::Summarize(seconds).median;
  const double peak = benchmark::Summarize(megabytes).max;
  std::printf(
      "%-13s %-5s %7.1f %7.1f   %7.3f (%.3f..%.3f) %7.3f   %6.1fx   %7.1f "
      "%5.2f   %5.1fx\n",
      reference.model.c_str(), reference.chain.c_str(), input, output, median,
      benchmark::Summarize(seconds).min, benchmark::Summarize(seconds).max,
      benchmark::Summarize(cpu).median, reference.seconds / median, peak,
      peak / input, reference.megabytes / peak);
  std::fflush(stdout);
  OPTFARM_RETURN_IF_ERROR(RemoveAll(log));
  return RemoveAll(out);
}

absl::Status RunChains(const Options& options) {
  std::printf(
      "model         chain   in MB  out MB    wall s (least..most)      cpu s  "
      "TF/ours  peak MB /in     TF/ours\n");
  for (const Reference& reference : References()) {
    OPTFARM_RETURN_IF_ERROR(RunChain(reference, options));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CLI::App app("Measures chains of transforms on full-size models.");
  Options options;
  app.require_subcommand(1);
  CLI::App* make = app.add_subcommand("make", "Writes the models.");
  make->add_option("folder", options.folder)->required();
  CLI::App* run = app.add_subcommand("run", "Runs the chains.");
  run->add_option("folder", options.folder)->required();
  run->add_option("--optctl", options.optctl)->required();
  run->add_option("--out_folder", options.out_folder);
  run->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      make->parsed() ? MakeModels(options.folder) : RunChains(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "chain_bench: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) { return optfarm::bench::Main(argc, argv); }
