// Measures what calibration costs beside the plain float runs it needs:
//
//   calibration_bench --model=M.pb --data=pictures/ --mean=127.5 --std=127.5
//
// For each range method the same samples run through the float model and
// through the calibration, taking turns, so that what disturbs the machine
// disturbs both; a line shows the median ratio of seconds. The correction of
// biases needs a run of each of its samples through the float model and one
// through the integer model, and stands beside those. Pictures are read in
// all of them, once each.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"
#include "engine/optimize/calibration/calibration.h"
#include "engine/optimize/layers/stepwise_runs.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/optimize/rounding/bias_correction.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/optimize/samples/sample_runs.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/quantizing/expanded_layers.h"

namespace optfarm::bench {
namespace {

using graph::Graph;

constexpr char kBiases[] = "bias_correction";

struct Options {
  std::string model;
  std::string data;
  std::string recipe = "int8-fast";
  double mean = 0;
  double std = 1;
  int64_t samples = 100;
  int threads = 4;
  int rounds = 3;
  // Range methods and kBiases; empty: all.
  std::vector<std::string> only;

  bool Wants(const std::string& name) const {
    return only.empty() ||
           std::find(only.begin(), only.end(), name) != only.end();
  }
};

struct Bench {
  Graph original;
  // What the chain quantizes, and what it makes of that.
  Graph floats;
  Graph quantized;
  std::vector<graph::TensorName> inputs, outputs;
  std::vector<optimize::ModelTensor> input_tensors;
};

absl::StatusOr<Graph> Load(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadGraphDef(path));
  return Graph::FromDef(std::move(def));
}

// The model and what the recipe's chain makes of it.
absl::StatusOr<Bench> Prepare(const Options& options) {
  Bench bench;
  OPTFARM_ASSIGN_OR_RETURN(bench.original, Load(options.model));
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           graph::InferIo(bench.original, {}));
  for (const graph::GraphTensor& tensor : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(bench.inputs.emplace_back(),
                             graph::ParseTensorName(tensor.name));
    optimize::ModelTensor& input = bench.input_tensors.emplace_back();
    input.name = bench.inputs.back();
    input.dtype = tensor.dtype;
    if (!tensor.shape.has_rank()) continue;
    input.shape.emplace();
    for (int i = 0; i < tensor.shape.rank(); ++i) {
      input.shape->push_back(tensor.shape.dim(i));
    }
  }
  for (const graph::GraphTensor& tensor : io.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(bench.outputs.emplace_back(),
                             graph::ParseTensorName(tensor.name));
  }
  OPTFARM_ASSIGN_OR_RETURN(const v1::Recipe recipe,
                           optimize::LoadRecipe(options.recipe));
  OPTFARM_ASSIGN_OR_RETURN(const auto steps, optimize::StepsOfRecipe(recipe));
  const auto all = absl::MakeConstSpan(steps);
  const size_t before = optimize::StepsBeforeQuantizing(all);
  bench.quantized = bench.original.Clone();
  for (const auto part : {all.first(before), all.subspan(before)}) {
    bench.floats = bench.quantized.Clone();
    OPTFARM_RETURN_IF_ERROR(transforms::RunTransforms(&bench.quantized, part,
                                                      bench.inputs,
                                                      bench.outputs)
                                .status());
  }
  return bench;
}

absl::StatusOr<std::vector<std::vector<runtime::Tensor>>> ReadAll(
    const optimize::Dataset& data, absl::Span<const int64_t> indices,
    runtime::ThreadPool* pool) {
  optimize::SampleReader reader(data);
  std::vector<std::vector<runtime::Tensor>> samples;
  for (auto& sample : reader.ReadMany(indices, pool)) {
    if (sample.has_value()) samples.push_back(*std::move(sample));
  }
  OPTFARM_RETURN_IF_ERROR(reader.CheckBad());
  return samples;
}

using Work = std::function<absl::Status()>;

// UNITS: seconds.
struct Cost {
  double wall = 0;
  // Of all threads together: steadier on a machine that others use too.
  double processor = 0;
};

absl::StatusOr<Cost> CostOf(const Work& work) {
  const absl::Time start = absl::Now();
  const std::clock_t used = std::clock();
  OPTFARM_RETURN_IF_ERROR(work());
  return Cost{absl::ToDoubleSeconds(absl::Now() - start),
              static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::Status Compare(const char* name, const Work& plain, const Work& other,
                     int rounds) {
  std::vector<double> ratios, processor_ratios, seconds, plain_seconds;
  for (int i = 0; i < rounds; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Cost a, CostOf(plain));
    OPTFARM_ASSIGN_OR_RETURN(const Cost b, CostOf(other));
    ratios.push_back(b.wall / a.wall);
    processor_ratios.push_back(b.processor / a.processor);
    seconds.push_back(b.wall);
    plain_seconds.push_back(a.wall);
  }
  std::printf(
      "%-16s %7.3f s  plain runs %7.3f s  ratio %5.2f  of processor time "
      "%5.2f\n",
      name, Median(seconds), Median(plain_seconds), Median(ratios),
      Median(processor_ratios));
  std::fflush(stdout);
  return absl::OkStatus();
}

// The quantized graph with frozen ranges and its layers taken apart.
absl::StatusOr<Graph> Expanded(const Bench& bench,
                               absl::Span<const int64_t> samples, int threads,
                               const optimize::Dataset& data) {
  optimize::SampleReader reader(data);
  const v1::Calibration calibration;
  OPTFARM_ASSIGN_OR_RETURN(
      const optimize::Observation observed,
      optimize::ObserveRanges(calibration, {&bench.quantized, &bench.floats},
                              bench.outputs,
                              {bench.inputs, samples, threads, &reader}));
  Graph graph = bench.quantized.Clone();
  OPTFARM_RETURN_IF_ERROR(optimize::FreezeKnown(calibration, observed, &graph));
  const transforms::TransformStep steps[] = {{"fuse_requantization", {}},
                                             {"strip_unused_nodes", {}}};
  OPTFARM_RETURN_IF_ERROR(
      transforms::RunTransforms(&graph, steps, bench.inputs, bench.outputs)
          .status());
  OPTFARM_RETURN_IF_ERROR(transforms::ExpandLayers(
      bench.original, {}, transforms::FindIdleBiases(graph, bench.outputs),
      &graph));
  return graph;
}

absl::Status Run(const Options& options) {
  OPTFARM_ASSIGN_OR_RETURN(const Bench bench, Prepare(options));
  optimize::LocalData local;
  OPTFARM_RETURN_IF_ERROR(local.AddFolder(options.data).status());
  local.SetMeanAndStd(options.mean, options.std);
  OPTFARM_ASSIGN_OR_RETURN(
      const optimize::Dataset data,
      optimize::Dataset::Open(local, {}, bench.input_tensors));
  const std::vector<int64_t> chosen = data.Choose(options.samples, 1);
  std::printf("%zu samples, %d threads, recipe %s\n", chosen.size(),
              options.threads, options.recipe.c_str());
  // The same number of plain runs over the same files.
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      runtime::Session::Create(bench.original, bench.inputs, bench.outputs));
  const Work plain = [&] {
    optimize::SampleReader reader(data);
    return optimize::RunSamples(
        *session, chosen, options.threads, &reader,
        [](size_t, std::vector<runtime::Tensor>) { return absl::OkStatus(); });
  };
  for (const auto& [name, method] :
       {std::pair("min_max", v1::Calibration::MIN_MAX),
        std::pair("percentile", v1::Calibration::PERCENTILE),
        std::pair("moving_average", v1::Calibration::MOVING_AVERAGE),
        std::pair("mse", v1::Calibration::MSE),
        std::pair("kl", v1::Calibration::KL)}) {
    if (!options.Wants(name)) continue;
    v1::Calibration calibration;
    calibration.set_range_method(method);
    const Work observe = [&] {
      optimize::SampleReader reader(data);
      return optimize::ObserveRanges(
                 calibration, {&bench.quantized, &bench.floats}, bench.outputs,
                 {bench.inputs, chosen, options.threads, &reader})
          .status();
    };
    OPTFARM_RETURN_IF_ERROR(Compare(name, plain, observe, options.rounds));
  }
  if (!options.Wants(kBiases)) return absl::OkStatus();
  const std::vector<int64_t> corrected = data.Choose(32, 1);
  // As the optimizer does it: with frozen ranges, layers taken apart.
  OPTFARM_ASSIGN_OR_RETURN(const Graph expanded,
                           Expanded(bench, chosen, options.threads, data));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto integers,
      runtime::Session::Create(expanded, bench.inputs, bench.outputs));
  // Each picture is read once and runs once through both graphs.
  const Work plain_both = [&]() -> absl::Status {
    runtime::ThreadPool pool(options.threads);
    OPTFARM_ASSIGN_OR_RETURN(const auto samples,
                             ReadAll(data, corrected, &pool));
    for (const runtime::Session* graph : {session.get(), integers.get()}) {
      OPTFARM_RETURN_IF_ERROR(optimize::RunAtOnce(
          *graph, samples, &pool, [](size_t, std::vector<runtime::Tensor>) {}));
    }
    return absl::OkStatus();
  };
  const Work correct = [&]() -> absl::Status {
    runtime::ThreadPool pool(options.threads);
    OPTFARM_ASSIGN_OR_RETURN(const auto samples,
                             ReadAll(data, corrected, &pool));
    Graph graph = expanded.Clone();
    return optimize::CorrectBiases(bench.original, bench.inputs, samples,
                                   options.threads, &graph)
        .status();
  };
  return Compare(kBiases, plain_both, correct, options.rounds);
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) {
  optfarm::bench::Options options;
  CLI::App app("Measures calibration against the float runs it needs.");
  app.add_option("--model", options.model, "Float graph")->required();
  app.add_option("--data", options.data, "Folder of samples")->required();
  app.add_option("--recipe", options.recipe, "Whose chain is calibrated");
  app.add_option("--mean", options.mean, "Subtracted from grey levels");
  app.add_option("--std", options.std, "Grey levels are divided by");
  app.add_option("--only", options.only, "Range methods, bias_correction");
  app.add_option("--samples", options.samples, "Samples used")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--threads", options.threads, "Samples run at once")
      ->check(CLI::Range(1, 64));
  app.add_option("--rounds", options.rounds, "Turns taken")
      ->check(CLI::Range(1, 100));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = optfarm::bench::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}
