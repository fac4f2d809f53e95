// What is to be measured, and how.

#ifndef OPTFARM_ENGINE_BENCHMARK_BENCHMARK_REQUEST_H_
#define OPTFARM_ENGINE_BENCHMARK_BENCHMARK_REQUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/formats/tensorflow/mapped_graph.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::benchmark {

class EngineProcess;

struct BenchmarkVariant {
  // "float", or the recipe's name.
  std::string name;
  std::string graph_path;
  // What to feed and fetch. Empty: inferred from the graph. An unknown
  // dimension is 1.
  std::vector<v1::TensorSpec> inputs;
  std::vector<std::string> outputs;
  // Nodes that are run once after loading: initializers of variables.
  std::vector<std::string> init_ops = {};
  // Nodes that each run also runs for what they do.
  std::vector<std::string> targets = {};
  // The first elements of each of `inputs`, the others are 0. Empty, or fewer
  // than `inputs`: random values for the rest.
  std::vector<std::vector<double>> input_values = {};
  // Reads graph_path; empty: formats::LoadGraph, which knows no other formats
  // than TensorFlow's.
  std::function<absl::StatusOr<formats::LoadedGraph>(const std::string& path)>
      load_graph = nullptr;
  // Runs graph_path, a file of its own format, in place of Optfarm's runtime.
  // It is fed, and its answers are compared with, what `same_as` is and gives:
  // an earlier variant of Optfarm's runtime. Inputs, outputs and all that
  // follows them above are not used.
  std::shared_ptr<EngineProcess> engine = nullptr;
  std::string same_as = {};
};

struct BenchmarkInputFile {
  // Input fed; may be empty when there is one.
  std::string input;
  // An .npy file with one sample, as it is fed; any other file holds the bytes
  // of the elements and nothing else.
  std::string path;
};

// Made-up values of an input lie within [low, high].
struct BenchmarkInputRange {
  std::string input;
  double low = 0;
  double high = 1;
};

struct BenchmarkRequest {
  std::vector<BenchmarkVariant> variants;
  // Each is measured; empty: 1 and 4, or 1 and all the machine's if it has
  // fewer.
  std::vector<int> threads;
  // Runs go on until both are met, for each variant and thread count ...
  int min_runs = 50;
  absl::Duration min_time = absl::Seconds(1);
  // ... or this is reached for one variant and thread count.
  absl::Duration max_time = absl::Seconds(60);
  // UNITS: fraction of the median. Runs also go on until the 95 % interval of
  // each median is within so much of it on both sides; 0: not asked for.
  // max_time wins; then the measurement says so.
  double precision = 0;
  int warmup_runs = 2;
  // Runs with a per-op trace, after the timed ones; 0: no profile.
  int profile_runs = 3;
  // Further such runs for the time of every step (Measurement.steps); 0: not
  // asked for.
  int step_runs = 0;
  // Inputs without a file get seeded random values.
  std::vector<BenchmarkInputFile> input_files;
  std::vector<BenchmarkInputRange> input_ranges;
  // Processors that kernels' threads may use, the caller's excepted; empty:
  // all.
  std::vector<int> processors;
  uint64_t seed = 1;
  // Also count the operations of each graph.
  bool count_flops = false;
  // Also list which fusions took which nodes.
  bool explain_fusions = false;
  // Goes into Measurement.device and Environment.build_version.
  std::string device;
  std::string build_version;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_BENCHMARK_REQUEST_H_
