// Measures two variants against each other in one run: they take turns, so that
// what disturbs the machine disturbs both, and each round gives one ratio.
//
//   ab_bench graphs A.pb B.pb            two graph files
//   ab_bench recipes MODEL.pb fp32 int8  one model after two recipes' steps
//   ab_bench gemm                        float against 8-bit matrix products
//   ab_bench tiles                       8-bit layers by vectors and by AMX
//
// docs/benchmarks.md says how to read the output.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/benchmark/statistics.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/tensor_name.h"
#include "engine/optimize/recipes/recipe_steps.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/linear_algebra/matrix_product.h"
#include "engine/runtime/reference/quantized/quantized_gemm.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/operators/int8_cost.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/ukernels/cpu_features.h"
#include "tests/bench/matrix_unit.h"
#endif

namespace optfarm {
namespace {

using graph::Graph;
using runtime::Session;
using runtime::Tensor;

struct Options {
  int threads = 1;
  int rounds = 11;
  // Names of tensors; inferred when empty.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

// --- Taking turns ------------------------------------------------------------

using Work = std::function<void()>;

// Seconds that `times` calls take.
double Time(const Work& work, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) work();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(end - start).count();
}

// So many calls that one turn takes a twentieth of a second at least.
int TimesPerTurn(const Work& work) {
  constexpr double kTurnSeconds = 0.05;
  work();
  int times = 1;
  while (times < (1 << 20) && Time(work, times) < kTurnSeconds) times *= 2;
  return times;
}

// Prints medians per call and how often B fits into A, round by round; returns
// the median of that.
double Compare(const std::string& title, const Work& a, const Work& b,
               int rounds) {
  const int times_a = TimesPerTurn(a), times_b = TimesPerTurn(b);
  std::vector<double> seconds_a, seconds_b, ratios;
  for (int round = 0; round < rounds; ++round) {
    // Who begins changes, so that neither always runs on a warmer machine.
    double of_a = 0, of_b = 0;
    if (round % 2 == 0) of_a = Time(a, times_a) / times_a;
    of_b = Time(b, times_b) / times_b;
    if (round % 2 != 0) of_a = Time(a, times_a) / times_a;
    seconds_a.push_back(of_a);
    seconds_b.push_back(of_b);
    ratios.push_back(of_a / of_b);
  }
  const benchmark::Summary ratio = benchmark::Summarize(ratios);
  std::printf("%-28s A %9.3f ms   B %9.3f ms   A/B %5.2f (%.2f .. %.2f)\n",
              title.c_str(), 1e3 * benchmark::Summarize(seconds_a).median,
              1e3 * benchmark::Summarize(seconds_b).median, ratio.median,
              ratio.min, ratio.max);
  return ratio.median;
}

// --- Graphs ------------------------------------------------------------------

absl::StatusOr<Graph> Load(const std::string& path) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadGraphDef(path));
  return Graph::FromDef(std::move(def));
}

absl::StatusOr<graph::GraphIo> FindIo(const Graph& graph,
                                      const Options& options) {
  graph::IoRequest request;
  for (const std::string& name : options.inputs) {
    request.inputs.push_back({name, {}, {}});
  }
  request.outputs = options.outputs;
  return graph::InferIo(graph, request);
}

// Numbers between 0 and 1, the same in every run; zeros for other types.
absl::StatusOr<Tensor> MakeFeed(const graph::GraphTensor& input) {
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(input.shape.dims()));
  OPTFARM_ASSIGN_OR_RETURN(Tensor feed, Tensor::Zeros(input.dtype, shape));
  if (input.dtype == tensorflow::DT_FLOAT) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> number(0.0f, 1.0f);
    for (float& value : feed.flat<float>()) value = number(random);
  }
  return feed;
}

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const Graph& graph,
                                                     const graph::GraphIo& io,
                                                     int threads) {
  const auto names = [](const std::vector<graph::GraphTensor>& tensors)
      -> absl::StatusOr<std::vector<graph::TensorName>> {
    std::vector<graph::TensorName> found;
    for (const graph::GraphTensor& tensor : tensors) {
      OPTFARM_ASSIGN_OR_RETURN(graph::TensorName name,
                               graph::ParseTensorName(tensor.name));
      found.push_back(std::move(name));
    }
    return found;
  };
  OPTFARM_ASSIGN_OR_RETURN(const auto inputs, names(io.inputs));
  OPTFARM_ASSIGN_OR_RETURN(const auto outputs, names(io.outputs));
  runtime::SessionOptions options;
  options.threads = threads;
  return Session::Create(graph, inputs, outputs, options);
}

// `io` is that of both.
absl::Status CompareGraphs(const Graph& a, const Graph& b,
                           const graph::GraphIo& io, const Options& options) {
  std::vector<Tensor> feeds;
  for (const graph::GraphTensor& input : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor feed, MakeFeed(input));
    feeds.push_back(std::move(feed));
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto of_a,
                           MakeSession(a, io, options.threads));
  OPTFARM_ASSIGN_OR_RETURN(const auto of_b,
                           MakeSession(b, io, options.threads));
  OPTFARM_RETURN_IF_ERROR(of_a->Run(feeds).status());
  OPTFARM_RETURN_IF_ERROR(of_b->Run(feeds).status());
  Compare(
      absl::StrCat("threads=", options.threads),
      [&] { (void)of_a->Run(feeds); }, [&] { (void)of_b->Run(feeds); },
      options.rounds);
  return absl::OkStatus();
}

absl::Status CompareFiles(const std::string& a, const std::string& b,
                          const Options& options) {
  OPTFARM_ASSIGN_OR_RETURN(const Graph of_a, Load(a));
  OPTFARM_ASSIGN_OR_RETURN(const Graph of_b, Load(b));
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io, FindIo(of_a, options));
  return CompareGraphs(of_a, of_b, io, options);
}

// The graph after the recipe's steps; ranges are not calibrated.
absl::StatusOr<Graph> Optimized(const Graph& graph, const std::string& name,
                                const graph::GraphIo& io) {
  OPTFARM_ASSIGN_OR_RETURN(const v1::Recipe recipe, optimize::LoadRecipe(name));
  OPTFARM_ASSIGN_OR_RETURN(const auto steps, optimize::StepsOfRecipe(recipe));
  std::vector<graph::TensorName> inputs, outputs;
  for (const auto& input : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(graph::TensorName parsed,
                             graph::ParseTensorName(input.name));
    inputs.push_back(std::move(parsed));
  }
  for (const auto& output : io.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(graph::TensorName parsed,
                             graph::ParseTensorName(output.name));
    outputs.push_back(std::move(parsed));
  }
  Graph optimized = graph.Clone();
  OPTFARM_RETURN_IF_ERROR(
      transforms::RunTransforms(&optimized, steps, inputs, outputs).status());
  return optimized;
}

absl::Status CompareRecipes(const std::string& model, const std::string& a,
                            const std::string& b, const Options& options) {
  OPTFARM_ASSIGN_OR_RETURN(const Graph graph, Load(model));
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io, FindIo(graph, options));
  OPTFARM_ASSIGN_OR_RETURN(const Graph of_a, Optimized(graph, a, io));
  OPTFARM_ASSIGN_OR_RETURN(const Graph of_b, Optimized(graph, b, io));
  return CompareGraphs(of_a, of_b, io, options);
}

// --- Matrix products ---------------------------------------------------------

struct ProductSize {
  int64_t rows, depth, columns;
};

// Float is A, 8-bit is B; both on the calling thread.
void CompareProducts(const ProductSize& size, int rounds) {
  std::mt19937 random(1);
  const auto codes = [&random](int64_t count) {
    std::vector<uint8_t> values(static_cast<size_t>(count));
    for (uint8_t& value : values) value = static_cast<uint8_t>(random());
    return values;
  };
  const std::vector<uint8_t> a = codes(size.rows * size.depth);
  const std::vector<uint8_t> b = codes(size.depth * size.columns);
  const std::vector<float> float_a(a.begin(), a.end());
  const std::vector<float> float_b(b.begin(), b.end());
  const auto results = static_cast<size_t>(size.rows * size.columns);
  std::vector<float> float_out(results);
  std::vector<int32_t> out(results);
  Compare(
      absl::StrCat(size.rows, " x ", size.depth, " x ", size.columns),
      [&] {
        runtime::MultiplyOnOneThread<float>(
            {float_a.data(), size.rows, size.depth, false},
            {float_b.data(), size.depth, size.columns, false},
            float_out.data());
      },
      [&] {
        runtime::QuantizedGemm({a.data(), false, 128}, {b.data(), false, 120},
                               size.rows, size.depth, size.columns, out.data());
      },
      rounds);
}

// Sizes of convolutions and fully connected layers: pixels x patch x channels.
absl::Status CompareTypicalProducts(const Options& options) {
  for (const ProductSize& size :
       std::initializer_list<ProductSize>{{1, 256, 10},
                                          {1, 1024, 1001},
                                          {64, 64, 64},
                                          {196, 256, 256},
                                          {3136, 64, 64},
                                          {784, 1152, 128},
                                          {6400, 27, 32},
                                          {512, 512, 512}}) {
    CompareProducts(size, options.rounds);
  }
  return absl::OkStatus();
}

// --- Matrix units ------------------------------------------------------------

#ifdef OPTFARM_FAST_KERNELS

// A: the vector registers; B: the matrix unit. Returns how often B fits into A.
double CompareUnits(const bench::UnitLayer& layer,
                    const runtime::Int8Kernels& kernels, int rounds,
                    runtime::ThreadPool* pool, double* estimate) {
  bench::UnitProduct product(layer, kernels);
  const runtime::Int8Cycles cycles =
      runtime::EstimateInt8Cycles(product.size());
  *estimate = cycles.vector / cycles.matrix;
  const double ratio = Compare(
      layer.ToString(), [&] { product.Run(false, pool); },
      [&] { product.Run(true, pool); }, rounds);
  std::printf(
      "%-28s estimated A/B %5.2f: %s\n", "", *estimate,
      runtime::PrefersMatrixUnit(product.size()) ? "matrix unit" : "vectors");
  return ratio;
}

// The least rows of a product from which on the matrix unit is faster.
void PrintCrossover(int64_t depth, int64_t columns,
                    const runtime::Int8Kernels& kernels, int rounds,
                    runtime::ThreadPool* pool) {
  constexpr int64_t kMostRows = 1024;
  int64_t measured = 0, chosen = 0;
  for (int64_t rows = kMostRows; rows >= 1; rows /= 2) {
    const bench::UnitLayer layer = {1, rows, depth, 1, 1, columns};
    double estimate = 0;
    const double ratio = CompareUnits(layer, kernels, rounds, pool, &estimate);
    const bool was_faster = rows == kMostRows || measured == 2 * rows;
    if (ratio > 1 && was_faster) measured = rows;
    if (runtime::PrefersMatrixUnit(
            {.rows = rows, .depth = depth, .columns = columns})) {
      chosen = rows;
    }
  }
  const auto from = [](int64_t rows) {
    return rows == 0 ? std::string("never") : absl::StrCat("from ", rows);
  };
  std::printf("depth %d, %d columns: faster %s rows, chosen %s rows\n",
              static_cast<int>(depth), static_cast<int>(columns),
              from(measured).c_str(), from(chosen).c_str());
}

absl::Status CompareMatrixUnit(const Options& options) {
  const runtime::CpuFeatures cpu = runtime::UsedCpuFeatures();
  const runtime::Int8Kernels kernels = runtime::SelectInt8Kernels(cpu);
  if (kernels.matrix == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "timing a matrix unit: this processor has none that may be used (",
        ToString(cpu), "); `optctl version --kernels` says what it has"));
  }
  std::printf("A: %s, B: %s, %d threads\n", kernels.gemm->name,
              kernels.matrix->name, options.threads);
  runtime::ThreadPool pool(options.threads);
  int layers = 0, wrong = 0;
  for (const bench::UnitLayer& layer : bench::UnitLayers()) {
    const bench::UnitProduct product(layer, kernels);
    double estimate = 0;
    const double ratio =
        CompareUnits(layer, kernels, options.rounds, &pool, &estimate);
    ++layers;
    if ((ratio > 1) != runtime::PrefersMatrixUnit(product.size())) ++wrong;
  }
  std::printf("%d of %d layers are left to the slower kernel\n", wrong, layers);
  for (const int64_t size : {64, 256, 1024}) {
    PrintCrossover(size, size, kernels, options.rounds, &pool);
  }
  return absl::OkStatus();
}

#else

absl::Status CompareMatrixUnit(const Options&) {
  return absl::FailedPreconditionError(
      "timing a matrix unit: this build has no fast kernels");
}

#endif  // OPTFARM_FAST_KERNELS

int Main(int argc, char** argv) {
  CLI::App app("Measures two variants against each other.");
  Options options;
  std::string first, second, third;
  app.require_subcommand(1);
  const auto with_common = [&options](CLI::App* command) {
    command->add_option("--rounds", options.rounds)->check(CLI::Range(5, 1000));
    return command;
  };
  const auto with_model = [&](CLI::App* command) {
    command->add_option("--threads", options.threads)
        ->check(CLI::Range(1, 256));
    command->add_option("--inputs", options.inputs)->delimiter(',');
    command->add_option("--outputs", options.outputs)->delimiter(',');
    return with_common(command);
  };
  CLI::App* graphs = with_model(app.add_subcommand("graphs", "Two files."));
  graphs->add_option("a", first)->required();
  graphs->add_option("b", second)->required();
  CLI::App* recipes =
      with_model(app.add_subcommand("recipes", "One model after two recipes."));
  recipes->add_option("model", first)->required();
  recipes->add_option("a", second)->required();
  recipes->add_option("b", third)->required();
  CLI::App* gemm =
      with_common(app.add_subcommand("gemm", "Float and 8-bit products."));
  CLI::App* tiles = with_common(app.add_subcommand(
      "tiles", "8-bit layers by vectors (A) and by AMX (B)."));
  tiles->add_option("--threads", options.threads)->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      gemm->parsed()     ? CompareTypicalProducts(options)
      : tiles->parsed()  ? CompareMatrixUnit(options)
      : graphs->parsed() ? CompareFiles(first, second, options)
                         : CompareRecipes(first, second, third, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "ab_bench: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace optfarm

int main(int argc, char** argv) { return optfarm::Main(argc, argv); }
