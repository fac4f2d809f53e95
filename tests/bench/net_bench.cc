// How fast whole nets run here, and against other engines in the same run.
//
//   net_bench run [NET ...] [--threads N] [--rounds R] [--chain CHAIN]
//                 [--against CHAIN ...] [--peer NAME=COMMAND ...]
//                 [--input NAME=SHAPE[=VALUE] ...] [--outputs NAME,...]
//                 [--most_rounds M] [--patience SECONDS] [--tries T]
//                 [--quiet_rate RATE] [--print_rounds] [--pin=false]
//       milliseconds and ratios; each round runs ours, ours after each other
//       chain, the reference kernels where --reference is given, and every
//       peer once, one after the other, all on the processors that were the
//       quietest when the round began, as long as they are; takes R
//       undisturbed rounds, and M in all at most (four times R)
//   net_bench layers NET [--threads N]
//       where the time goes, step by step
//   net_bench probe [--seconds SECONDS]
//       how much of its core each processor has; the last word is the rate of
//       one that shares it with nobody, for --quiet_rate
//   net_bench roofline
//       what one thread of this machine can do at most
//
// A NET is a full-size model's name or a frozen graph's file, whose inputs and
// outputs are found where they are not given. A peer's command
// is run by the shell, with {net} and {threads} filled in, and prints
// milliseconds of one inference as the last word of its output.
// docs/benchmarks.md says how to read the output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/session/session.h"
#include "tests/bench/bench_net.h"
#include "tests/bench/contest.h"
#include "tests/bench/cpu_probe.h"
#include "tests/bench/full_size_models.h"
#include "tests/bench/pinned_rounds.h"
#include "tests/bench/quiet_cpus.h"
#include "tests/bench/roofline.h"
#include "tests/bench/rounds.h"

namespace optfarm::bench {
namespace {

struct Options {
  std::vector<std::string> nets;
  int threads = 1;
  ContestOptions contest;
  PinOptions pin;
  // Of probes.
  double probe_seconds = 3;
};

// --- Layers ------------------------------------------------------------------

// Multiply-adds for one output value of the node; 0 for what is not linear.
int64_t DepthOf(const graph::Graph& graph, const std::string& name) {
  const graph::NodeId id = graph.Find(name);
  if (id == graph::kNoNode || graph.node(id).inputs().size() < 2) return 0;
  const graph::Node& node = graph.node(id);
  const bool is_depthwise =
      absl::StrContains(std::string(node.op()), "Depthwise");
  const bool is_linear = is_depthwise ||
                         absl::StrContains(std::string(node.op()), "Conv2D") ||
                         absl::StrContains(std::string(node.op()), "MatMul");
  if (!is_linear) return 0;
  const graph::Node& weights = graph.node(node.inputs()[1].node);
  const auto value = graph::GetTensor(weights.def(), "value");
  if (!value.ok()) return 0;
  int64_t depth = 1;
  const int dims = (*value)->tensor_shape().dim_size();
  for (int i = 0; i + (is_depthwise ? 2 : 1) < dims; ++i) {
    depth *= (*value)->tensor_shape().dim(i).size();
  }
  return depth;
}

struct Layer {
  std::string name;
  std::string op;
  double milliseconds = 1e30;
  int64_t products = 0;
};

void AddRun(const graph::Graph& graph, const runtime::RunTrace& trace,
            std::vector<Layer>* layers) {
  layers->resize(trace.nodes.size());
  for (size_t k = 0; k < layers->size(); ++k) {
    const runtime::NodeTiming& node = trace.nodes[k];
    Layer& layer = (*layers)[k];
    layer.name = node.name;
    layer.op = node.op;
    layer.milliseconds =
        std::min(layer.milliseconds, absl::ToDoubleMilliseconds(node.duration));
    if (node.outputs.empty()) continue;
    const std::string first =
        node.fused_names.empty() ? node.name : node.fused_names[0];
    layer.products =
        node.outputs[0].shape.num_elements() * DepthOf(graph, first);
  }
}

void PrintLayerTimes(const std::vector<Layer>& layers) {
  double total = 0;
  std::map<std::string, double> by_op;
  for (const Layer& layer : layers) {
    total += layer.milliseconds;
    by_op[layer.op] += layer.milliseconds;
    std::printf("%9.4f ms %8.1f GFLOP/s  %-28s %s\n", layer.milliseconds,
                2e-6 * static_cast<double>(layer.products) / layer.milliseconds,
                layer.op.c_str(), layer.name.c_str());
  }
  std::printf("\n");
  for (const auto& [op, milliseconds] : by_op) {
    std::printf("%9.4f ms %5.1f %%  %s\n", milliseconds,
                100 * milliseconds / total, op.c_str());
  }
  std::printf("%9.4f ms in all\n", total);
}

absl::Status MeasureLayers(const std::string& name,
                           const ContestOptions& options,
                           runtime::ThreadPool* pool, PinnedRounds* pinned) {
  OPTFARM_ASSIGN_OR_RETURN(const Net net, LoadNet(name, options.net));
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           MakeSession(net, pool, !options.with_reference));
  std::vector<Layer> layers;
  std::vector<Round> rounds;
  while (WantsMore(rounds, pinned->best_rate(), options.limits)) {
    const auto runs = [&]() -> absl::StatusOr<double> {
      for (int i = 0; i < 5; ++i) {
        runtime::RunTrace trace;
        OPTFARM_RETURN_IF_ERROR(session->Run(net.feeds, &trace).status());
        AddRun(net.graph, trace, &layers);
      }
      return 0;
    };
    pinned->BeginRound();
    OPTFARM_ASSIGN_OR_RETURN(std::vector<Turn> turns, pinned->TakeTurns(runs));
    rounds.push_back({{std::move(turns)}});
  }
  PrintLayerTimes(layers);
  std::printf("%s\n", DescribeRounds(rounds, pinned->best_rate()).c_str());
  return absl::OkStatus();
}

// --- The machine -------------------------------------------------------------

absl::Status PrintProbes(const Options& options) {
  QuietCpus cpus(AllowedCpus(), ProbeCpus, options.pin.quiet_rate);
  const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> length(options.probe_seconds);
  do {
    std::vector<CpuRate> rates;
    for (const int cpu : cpus.candidates()) {
      OPTFARM_ASSIGN_OR_RETURN(rates.emplace_back(), cpus.LeastRate({cpu}));
    }
    std::printf("of the best rate:");
    for (size_t i = 0; i < rates.size(); ++i) {
      std::printf("  %d %.2f%s%s", cpus.candidates()[i],
                  rates[i].own_rate / cpus.best(),
                  cpus.IsQuiet(rates[i].own_rate) ? "" : " shared",
                  cpus.IsQuiet(rates[i].rate / rates[i].own_rate * cpus.best())
                      ? ""
                      : " used");
    }
    std::printf("\n");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } while (std::chrono::steady_clock::now() - start < length);
  std::printf("best rate, 1e9 instructions a second: %.3f\n", cpus.best());
  return absl::OkStatus();
}

absl::Status PrintRoofline(PinnedRounds* pinned) {
  OPTFARM_RETURN_IF_ERROR(pinned->Pin());
  const Roofline roofline = MeasureRoofline();
  std::printf(
      "one thread: %.0f GFLOP/s in float (%s), %.1f GB/s read from memory\n",
      roofline.gigaflops, roofline.instructions, roofline.gigabytes);
  return absl::OkStatus();
}

// --- The command line --------------------------------------------------------

void AddPinOptions(Options* options, CLI::App* command) {
  command->add_flag("--pin", options->pin.pin,
                    "to the processors that are quietest");
  command
      ->add_option("--patience", options->pin.patience,
                   "seconds that a turn waits for quiet processors")
      ->check(CLI::Range(0.0, 3600.0));
  command
      ->add_option("--tries", options->pin.tries,
                   "of a turn that shares a core")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--quiet_rate", options->pin.quiet_rate,
                   "of an undisturbed processor, as probe printed it before")
      ->check(CLI::NonNegativeNumber);
}

CLI::App* AddNetOptions(Options* options, CLI::App* command) {
  ContestOptions& contest = options->contest;
  command->add_option("nets", options->nets);
  command->add_option("--input", contest.net.inputs)->delimiter('\0');
  command->add_option("--outputs", contest.net.outputs)->delimiter(',');
  command->add_option("--chain", contest.net.chain)
      ->check(CLI::IsMember(ChainNames()));
  command->add_option("--threads", options->threads)->check(CLI::Range(1, 256));
  command->add_option("--rounds", contest.limits.wanted, "undisturbed ones")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--most_rounds", contest.limits.most,
                   "of any kind; four times --rounds if not given")
      ->check(CLI::Range(1, 100000));
  command->add_flag("--reference", contest.with_reference);
  AddPinOptions(options, command);
  return command;
}

absl::Status RunCommand(const CLI::App& command, Options options) {
  const std::string name = command.get_name();
  if (name == "probe") return PrintProbes(options);
  OPTFARM_RETURN_IF_ERROR(CheckLimits(options.contest.limits));
  runtime::ThreadPool pool(options.threads);
  PinnedRounds pinned(options.pin, &pool);
  if (name == "roofline") return PrintRoofline(&pinned);
  if (options.nets.empty()) options.nets = FullSizeModelNames();
  for (const std::string& net : options.nets) {
    const absl::Status status =
        name == "layers" ? MeasureLayers(net, options.contest, &pool, &pinned)
                         : HoldContest(net, options.contest, &pool, &pinned);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(net, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  ContestOptions& contest = options.contest;
  CLI::App app("Measures whole nets.");
  app.require_subcommand(1);
  CLI::App* run =
      AddNetOptions(&options, app.add_subcommand("run", "Times and ratios."));
  run->add_option("--peer", contest.peers)->delimiter('\0');
  run->add_option("--against", contest.against)
      ->check(CLI::IsMember(ChainNames()));
  run->add_option("--seconds", contest.seconds, "of ours in each round");
  run->add_flag("--print_rounds", contest.prints_rounds);
  AddNetOptions(&options, app.add_subcommand("layers", "Step by step."));
  AddPinOptions(&options, app.add_subcommand("roofline", "What is possible."));
  CLI::App* probe = app.add_subcommand("probe", "Who shares a core.");
  probe->add_option("--seconds", options.probe_seconds);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = RunCommand(*app.get_subcommands()[0], options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "net_bench: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) { return optfarm::bench::Main(argc, argv); }
