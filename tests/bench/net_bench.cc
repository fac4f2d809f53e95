// How fast whole nets run here, and against other engines in the same run.
//
//   net_bench run [NET ...] [--threads N] [--rounds R] [--chain CHAIN]
//                 [--against CHAIN ...] [--peer NAME=COMMAND ...]
//                 [--input NAME=SHAPE[=VALUE] ...] [--outputs NAME,...]
//       milliseconds and ratios; each round runs ours, ours after each other
//       chain, the reference kernels where --reference is given, and every
//       peer once, one after the other
//   net_bench layers NET [--threads N]
//       where the time goes, step by step
//   net_bench roofline
//       what one thread of this machine can do at most
//
// A NET is a full-size model's name or a frozen graph's file, whose inputs and
// outputs are found where they are not given. A peer's command
// is run by the shell, with {net} and {threads} filled in, and prints
// milliseconds of one inference as the last word of its output.
// docs/performance.md says how to read the output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "engine/benchmark/statistics.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session.h"
#include "tests/bench/bench_net.h"
#include "tests/bench/full_size_models.h"
#include "tests/bench/roofline.h"

namespace optfarm::bench {
namespace {

using runtime::Session;
using runtime::Tensor;

struct Options {
  std::vector<std::string> nets;
  NetOptions net;
  // Chains.
  std::vector<std::string> against;
  std::vector<std::string> peers;
  int threads = 1;
  int rounds = 7;
  double seconds = 0.5;
  bool with_reference = false;
};

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const Net& net,
                                                     int threads,
                                                     bool fast_kernels) {
  runtime::SessionOptions options;
  options.threads = threads;
  options.fast_kernels = fast_kernels;
  return Session::Create(net.graph, net.inputs, net.outputs, options);
}

// --- Taking turns ------------------------------------------------------------

double Milliseconds(const std::chrono::steady_clock::time_point& start) {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - start)
      .count();
}

// The least of the runs that fit into `seconds`; at least three.
absl::StatusOr<double> TimeSession(const Session& session, const Net& net,
                                   double seconds) {
  double least = 1e30;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3 || Milliseconds(begin) < 1e3 * seconds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    OPTFARM_RETURN_IF_ERROR(session.Run(net.feeds).status());
    least = std::min(least, Milliseconds(start));
  }
  return least;
}

// The last word that a shell command prints, as a number.
absl::StatusOr<double> TimePeer(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::InternalError("no shell to run a peer");
  std::string output;
  std::array<char, 4096> buffer;
  size_t count = 0;
  while ((count = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    output.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  const std::vector<std::string> words = absl::StrSplit(
      output, absl::ByAnyChar(" \t\r\n"), absl::SkipWhitespace());
  double milliseconds = 0;
  if (status != 0 || words.empty() ||
      !absl::SimpleAtod(words.back(), &milliseconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "running '", command, "': it ended with ", status, " and printed '",
        output, "', whose last word is no number"));
  }
  return milliseconds;
}

// One of those that take turns: a net of ours or a peer.
struct Series {
  std::string name;
  std::unique_ptr<Net> net;
  std::unique_ptr<Session> session;
  std::string command;
  std::vector<double> milliseconds;
  std::vector<double> ratios;
};

absl::StatusOr<Series> MakeOurs(const std::string& series,
                                const std::string& net,
                                const std::string& chain, bool fast_kernels,
                                const Options& options) {
  Series ours;
  ours.name = series;
  NetOptions of_net = options.net;
  of_net.chain = chain;
  OPTFARM_ASSIGN_OR_RETURN(Net loaded, LoadNet(net, of_net));
  ours.net = std::make_unique<Net>(std::move(loaded));
  OPTFARM_ASSIGN_OR_RETURN(
      ours.session, MakeSession(*ours.net, options.threads, fast_kernels));
  OPTFARM_RETURN_IF_ERROR(ours.session->Run(ours.net->feeds).status());
  return ours;
}

absl::StatusOr<Series> MakePeer(const std::string& peer, const std::string& net,
                                int threads) {
  const std::vector<std::string> parts =
      absl::StrSplit(peer, absl::MaxSplits('=', 1));
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("--peer '", peer, "' is not NAME=COMMAND"));
  }
  Series series;
  series.name = parts[0];
  series.command = absl::StrReplaceAll(
      parts[1], {{"{net}", net}, {"{threads}", absl::StrCat(threads)}});
  return series;
}

void Print(const std::string& net, const Options& options,
           const std::vector<Series>& all) {
  for (const Series& series : all) {
    const benchmark::Summary time = benchmark::Summarize(series.milliseconds);
    std::printf("%-24s %d thread%s %-12s %9.3f ms (%.3f .. %.3f)", net.c_str(),
                options.threads, options.threads == 1 ? " " : "s",
                series.name.c_str(), time.median, time.min, time.max);
    if (!series.ratios.empty()) {
      const benchmark::Summary ratio = benchmark::Summarize(series.ratios);
      const double least =
          benchmark::Summarize(all[0].milliseconds).min / time.min;
      std::printf("   ours/%s %.3f (%.3f .. %.3f), of the least %.3f",
                  series.name.c_str(), ratio.median, ratio.min, ratio.max,
                  least);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

absl::StatusOr<std::vector<Series>> MakeAll(const std::string& name,
                                            const Options& options) {
  std::vector<Series> all;
  const std::string& chain = options.net.chain;
  OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                           MakeOurs("ours", name, chain, true, options));
  for (const std::string& other : options.against) {
    OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                             MakeOurs(other, name, other, true, options));
  }
  if (options.with_reference) {
    OPTFARM_ASSIGN_OR_RETURN(
        all.emplace_back(), MakeOurs("reference", name, chain, false, options));
  }
  for (const std::string& peer : options.peers) {
    OPTFARM_ASSIGN_OR_RETURN(all.emplace_back(),
                             MakePeer(peer, name, options.threads));
  }
  return all;
}

absl::Status RunNet(const std::string& name, const Options& options) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<Series> all, MakeAll(name, options));
  for (int round = 0; round < options.rounds; ++round) {
    for (Series& series : all) {
      double milliseconds = 0;
      if (series.session != nullptr) {
        OPTFARM_ASSIGN_OR_RETURN(
            milliseconds,
            TimeSession(*series.session, *series.net, options.seconds));
      } else {
        OPTFARM_ASSIGN_OR_RETURN(milliseconds, TimePeer(series.command));
      }
      series.milliseconds.push_back(milliseconds);
      if (&series != &all[0]) {
        series.ratios.push_back(all[0].milliseconds.back() / milliseconds);
      }
    }
  }
  Print(name, options, all);
  return absl::OkStatus();
}

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

absl::Status PrintLayers(const std::string& name, const Options& options) {
  OPTFARM_ASSIGN_OR_RETURN(const Net net, LoadNet(name, options.net));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto session,
      MakeSession(net, options.threads, !options.with_reference));
  std::vector<Layer> layers;
  for (int i = 0; i < 5 * options.rounds; ++i) {
    runtime::RunTrace trace;
    OPTFARM_RETURN_IF_ERROR(session->Run(net.feeds, &trace).status());
    layers.resize(trace.nodes.size());
    for (size_t k = 0; k < layers.size(); ++k) {
      const runtime::NodeTiming& node = trace.nodes[k];
      layers[k].name = node.name;
      layers[k].op = node.op;
      layers[k].milliseconds = std::min(
          layers[k].milliseconds, absl::ToDoubleMilliseconds(node.duration));
      if (node.outputs.empty()) continue;
      const std::string first =
          node.fused_names.empty() ? node.name : node.fused_names[0];
      layers[k].products =
          node.outputs[0].shape.num_elements() * DepthOf(net.graph, first);
    }
  }
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
  return absl::OkStatus();
}

int PrintRoofline() {
  const Roofline roofline = MeasureRoofline();
  std::printf(
      "one thread: %.0f GFLOP/s in float (%s), %.1f GB/s read from memory\n",
      roofline.gigaflops, roofline.instructions, roofline.gigabytes);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures whole nets.");
  app.require_subcommand(1);
  const auto common = [&options](CLI::App* command) {
    command->add_option("nets", options.nets);
    command->add_option("--input", options.net.inputs)->delimiter('\0');
    command->add_option("--outputs", options.net.outputs)->delimiter(',');
    command->add_option("--chain", options.net.chain)
        ->check(CLI::IsMember(ChainNames()));
    command->add_option("--threads", options.threads)
        ->check(CLI::Range(1, 256));
    command->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
    command->add_flag("--reference", options.with_reference);
    return command;
  };
  CLI::App* run = common(app.add_subcommand("run", "Times and ratios."));
  run->add_option("--peer", options.peers)->delimiter('\0');
  run->add_option("--against", options.against)
      ->check(CLI::IsMember(ChainNames()));
  run->add_option("--seconds", options.seconds, "of ours in each round");
  CLI::App* layers = common(app.add_subcommand("layers", "Step by step."));
  CLI::App* roofline = app.add_subcommand("roofline", "What is possible.");
  CLI11_PARSE(app, argc, argv);
  if (roofline->parsed()) return PrintRoofline();
  if (options.nets.empty()) options.nets = FullSizeModelNames();
  for (const std::string& net : options.nets) {
    const absl::Status status =
        layers->parsed() ? PrintLayers(net, options) : RunNet(net, options);
    if (status.ok()) continue;
    std::fprintf(stderr, "net_bench: %s: %s\n", net.c_str(),
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace optfarm::bench

int main(int argc, char** argv) { return optfarm::bench::Main(argc, argv); }
