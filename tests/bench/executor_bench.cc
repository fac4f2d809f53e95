// What the executor itself costs, in time and in memory: chains of ops that do
// next to nothing, each variant in turn within every round; and full-size
// models with random weights.
//
//   executor_bench nodes [--nodes N] [--rounds R]
//       nanoseconds for each node, median over the rounds
//   executor_bench memory [--model resnet50_v1]
//       bytes of a full-size model's run against its largest live set

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/loaded_model.h"
#include "engine/runtime/session/session.h"
#include "tests/bench/full_size_models.h"

namespace optfarm {
namespace {

using runtime::Session;
using runtime::SessionOptions;
using runtime::Tensor;

// x -> op -> op -> ... -> y, all on one float.
graph::Graph Chain(const char* op, int nodes) {
  tensorflow::GraphDef def;
  tensorflow::NodeDef* x = def.add_node();
  x->set_name("x");
  x->set_op("Placeholder");
  graph::SetType(x, "dtype", tensorflow::DT_FLOAT);
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    tensorflow::NodeDef* node = def.add_node();
    node->set_name(i + 1 == nodes ? "y" : "n" + std::to_string(i));
    node->set_op(op);
    node->add_input(last);
    graph::SetType(node, "T", tensorflow::DT_FLOAT);
    last = node->name();
  }
  return *graph::Graph::FromDef(std::move(def));
}

struct Variant {
  const char* name;
  const char* op;
  bool reuse_buffers;
  bool plan_memory;
  std::unique_ptr<Session> session;
  std::vector<double> samples;
};

double NanosecondsPerNode(const Session& session, int nodes) {
  constexpr int kRuns = 50;
  const std::vector<Tensor> inputs = {Tensor::Scalar<float>(1.0f)};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) {
    if (!session.Run(inputs).ok()) return -1.0;
  }
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - start).count() /
         (double{kRuns} * nodes);
}

int MeasureNodes(int nodes, int rounds) {
  std::vector<Variant> variants;
  variants.push_back({"Identity", "Identity", true, true, nullptr, {}});
  variants.push_back({"Neg in place", "Neg", true, true, nullptr, {}});
  variants.push_back({"Neg planned", "Neg", false, true, nullptr, {}});
  variants.push_back({"Neg allocated", "Neg", false, false, nullptr, {}});
  for (Variant& variant : variants) {
    SessionOptions options;
    // They would make one step of several nodes.
    options.fast_kernels = false;
    options.reuse_buffers = variant.reuse_buffers;
    options.plan_memory = variant.plan_memory;
    auto session =
        Session::Create(Chain(variant.op, nodes), *graph::ParseTensorNames("x"),
                        *graph::ParseTensorNames("y"), options);
    if (!session.ok()) {
      std::fprintf(stderr, "%s\n", session.status().ToString().c_str());
      return 1;
    }
    variant.session = *std::move(session);
  }
  for (int round = 0; round < rounds; ++round) {
    for (Variant& variant : variants) {
      variant.samples.push_back(NanosecondsPerNode(*variant.session, nodes));
    }
  }
  for (Variant& variant : variants) {
    std::sort(variant.samples.begin(), variant.samples.end());
    std::printf("%-16s %7.1f ns a node (%.1f to %.1f)\n", variant.name,
                variant.samples[variant.samples.size() / 2],
                variant.samples.front(), variant.samples.back());
  }
  return 0;
}

// UNITS: bytes.
struct RunBytes {
  // The most that a run's tensors take at a time; the third run's, which has
  // its plan.
  int64_t peak = 0;
  // What the session holds: weights, as they are packed.
  int64_t held = 0;
};

absl::StatusOr<RunBytes> MeasureRun(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    const bench::FullSizeModel& names, const Tensor& input, bool plan_memory) {
  SessionOptions options;
  options.plan_memory = plan_memory;
  OPTFARM_ASSIGN_OR_RETURN(const auto feeds,
                           graph::ParseTensorNames(names.input));
  OPTFARM_ASSIGN_OR_RETURN(const auto fetches,
                           graph::ParseTensorNames(names.output));
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           Session::Create(model, feeds, fetches, options));
  RunBytes bytes;
  bytes.held = session->constant_bytes();
  for (int i = 0; i < 3; ++i) {
    runtime::RunTrace trace;
    OPTFARM_RETURN_IF_ERROR(session->Run({input}, &trace).status());
    bytes.peak = trace.peak_bytes;
  }
  return bytes;
}

absl::Status MeasureMemory(const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(bench::FullSizeModel full,
                           bench::MakeFullSizeModel(name));
  const double file = static_cast<double>(full.graph.ByteSizeLong());
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph,
                           graph::Graph::FromDef(std::move(full.graph)));
  const auto model = runtime::LoadedModel::Create(std::move(graph));
  OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape dims,
                           graph::PartialShape::Parse(full.input_shape));
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Shape shape,
                           runtime::Shape::FromDims(dims.dims()));
  OPTFARM_ASSIGN_OR_RETURN(const Tensor input,
                           Tensor::Zeros(tensorflow::DT_FLOAT, shape));
  OPTFARM_ASSIGN_OR_RETURN(const RunBytes scattered,
                           MeasureRun(model, full, input, false));
  OPTFARM_ASSIGN_OR_RETURN(const RunBytes planned,
                           MeasureRun(model, full, input, true));
  const auto live = static_cast<double>(scattered.peak);
  const auto placed = static_cast<double>(planned.peak);
  std::printf(
      "%s: file %.1f MB, weights %.1f MB, largest live set %.2f MB, "
      "planned %.2f MB (%.2f times)\n",
      name.c_str(), file / 1e6, static_cast<double>(model->value_bytes()) / 1e6,
      live / 1e6, placed / 1e6, placed / live);
  std::printf(
      "held and planned: %.1f MB; the file and 1.3 live sets: %.1f MB\n",
      (static_cast<double>(planned.held) + placed) / 1e6,
      (file + 1.3 * live) / 1e6);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("process: %.1f MB at most\n",
              static_cast<double>(usage.ru_maxrss) / 1e3);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  int nodes = 1000;
  int rounds = 21;
  std::string model = "resnet50_v1";
  CLI::App app("what the executor costs");
  app.require_subcommand(1);
  CLI::App* time = app.add_subcommand("nodes", "time for each node");
  time->add_option("--nodes", nodes, "length of the chain");
  time->add_option("--rounds", rounds, "how often each variant is measured");
  CLI::App* memory = app.add_subcommand("memory", "bytes of a model's run");
  memory->add_option("--model", model, "a full-size model's name");
  CLI11_PARSE(app, argc, argv);
  if (time->parsed()) return MeasureNodes(nodes, rounds);
  const absl::Status status = MeasureMemory(model);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace optfarm

int main(int argc, char** argv) { return optfarm::Main(argc, argv); }
