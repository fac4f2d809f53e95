// optctl graph benchmark: measures one graph on this machine.

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/graph_summary.h"
#include "client_cli/human_units.h"
#include "client_cli/layer_flags.h"
#include "client_cli/noise_text.h"
#include "client_cli/progress_line.h"
#include "client_cli/proto_json.h"
#include "engine/benchmark/benchmark.h"
#include "engine/benchmark/flops.h"
#include "engine/formats/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::client_cli {
namespace {

using Align = Table::Align;

Table MakeLatencyTable(const std::vector<v1::Measurement>& measurements) {
  Table table({{"threads", "THREADS", Align::kRight},
               {"runs", "RUNS", Align::kRight},
               {"load_us", "LOAD", Align::kRight},
               {"first_us", "FIRST", Align::kRight},
               {"min_us", "MIN", Align::kRight},
               {"median_us", "MEDIAN", Align::kRight},
               {"mean_us", "MEAN", Align::kRight},
               {"mad_us", "SPREAD", Align::kRight},
               {"p90_us", "P90", Align::kRight},
               {"p99_us", "P99", Align::kRight},
               {"max_us", "MAX", Align::kRight},
               {"peak_memory_bytes", "MEMORY", Align::kRight},
               {"noisy", "NOISY"}});
  const auto time = [](double us) { return Cell(us, HumanMicroseconds(us)); };
  for (const v1::Measurement& m : measurements) {
    table.AddRow(
        {Cell::Integer(m.threads()), Cell::Integer(m.runs()), time(m.load_us()),
         time(m.first_us()), time(m.min_us()), time(m.median_us()),
         time(m.mean_us()), time(m.mad_us()), time(m.p90_us()),
         time(m.p99_us()), time(m.max_us()),
         m.peak_memory_bytes() > 0
             ? Cell(m.peak_memory_bytes(), HumanBytes(m.peak_memory_bytes()))
             : Cell(),
         Cell(m.noisy(), m.noisy() ? "noisy" : "no")});
  }
  return table;
}

Table MakeOpsTable(const v1::Measurement& measurement) {
  double total = 0;
  for (const v1::OpTime& op : measurement.op_times()) total += op.total_us();
  Table table({{"op", "OP"},
               {"count", "NODES", Align::kRight},
               {"total_us", "TIME", Align::kRight},
               {"percent", "SHARE", Align::kRight},
               {"cumulative_percent", "SUM", Align::kRight}});
  double sum = 0;
  const auto percent = [total](double us) {
    const double value = total > 0 ? us / total * 100 : 0;
    return Cell(value, HumanPercent(value));
  };
  for (const v1::OpTime& op : measurement.op_times()) {
    sum += op.total_us();
    table.AddRow({Cell::Text(op.op()), Cell::Integer(op.count()),
                  Cell(op.total_us(), HumanMicroseconds(op.total_us())),
                  percent(op.total_us()), percent(sum)});
  }
  return table;
}

Table MakeNodesTable(const v1::Measurement& measurement) {
  Table table({{"total_us", "TIME", Align::kRight},
               {"op", "OP"},
               {"node", "SLOWEST NODES"}});
  for (const v1::NodeTime& node : measurement.slowest_nodes()) {
    table.AddRow({Cell(node.total_us(), HumanMicroseconds(node.total_us())),
                  Cell::Text(node.op()), Cell::Text(node.node())});
  }
  return table;
}

class GraphBenchmark final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("graph", "FILE", "The graph, binary or text.", &graph_);
    flags->Required();
    flags->Text("input_layer", "A,B",
                "Tensors to feed. Default: found in the graph.", &input_layer_);
    flags->Text("input_layer_shape", "1,2:3,4",
                "Their shapes, in the same order. Default: the graph's, with 1 "
                "for an unknown dimension.",
                &input_layer_shape_);
    flags->Text("input_layer_type", "T,T",
                "Their types: float, uint8, ... Default: the graph's.",
                &input_layer_type_);
    flags->Texts("input", "NAME=FILE.npy",
                 "Feed this instead of random values.", &inputs_);
    flags->Text("output_layer", "A,B",
                "Tensors to fetch. Default: found in the graph.",
                &output_layer_);
    flags->Integers("num_threads", "Thread counts to measure. Default: 1.",
                    &threads_);
    flags->Integer("num_runs", "Least runs measured. Default: 50.", &runs_, 1,
                   1'000'000);
    flags->Duration("min_secs", "Least time measured. Default: 1s.",
                    &min_time_);
    flags->Duration("max_secs",
                    "Longest time for one thread count; wins over the two "
                    "above. Default: 60s.",
                    &max_time_);
    flags->Integer("warmup_runs", "Runs before measuring. Default: 2.",
                   &warmup_runs_, 0, 1'000'000);
    flags->Integer("profile_runs",
                   "Runs timed op by op, after the measured ones; 0: no "
                   "profile. Default: 3.",
                   &profile_runs_, 0, 10'000);
    flags->Switch("show_flops",
                  "Also estimate floating-point operations a run and a second.",
                  &show_flops_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const benchmark::BenchmarkRequest request,
                             MakeRequest());
    benchmark::FlopCount flops;
    if (show_flops_) {
      OPTFARM_ASSIGN_OR_RETURN(flops, Count(request.variants[0]));
    }
    absl::StatusOr<std::vector<v1::Measurement>> measured;
    {
      ProgressLine line(context);
      measured = benchmark::RunBenchmark(
          request, [&line](const benchmark::BenchmarkProgress& progress) {
            line.Show(absl::StrFormat("%.0f%% %s", progress.fraction * 100,
                                      progress.stage));
            return absl::OkStatus();
          });
    }
    OPTFARM_RETURN_IF_ERROR(measured.status());
    Print(*measured, show_flops_ ? FlopsText(flops, *measured) : "", context);
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<benchmark::BenchmarkRequest> MakeRequest() const {
    benchmark::BenchmarkRequest request;
    benchmark::BenchmarkVariant& variant = request.variants.emplace_back();
    variant.name = "graph";
    variant.graph_path = graph_;
    OPTFARM_ASSIGN_OR_RETURN(
        variant.inputs,
        ParseLayerFlags(input_layer_, input_layer_type_, input_layer_shape_));
    variant.outputs = absl::StrSplit(output_layer_, ',', absl::SkipEmpty());
    for (const std::string& input : inputs_) {
      const size_t equals = input.find('=');
      if (equals == std::string::npos) {
        return UsageError(absl::StrCat("--input: '", input,
                                       "' is not of the form NAME=FILE.npy"));
      }
      request.input_files.push_back(
          {input.substr(0, equals), ExpandHome(input.substr(equals + 1))});
    }
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    request.device = host;
    request.build_version = OPTFARM_VERSION;
    request.threads.assign(threads_.begin(), threads_.end());
    request.min_runs = static_cast<int>(runs_);
    request.min_time = min_time_;
    request.max_time = max_time_;
    request.warmup_runs = static_cast<int>(warmup_runs_);
    request.profile_runs = static_cast<int>(profile_runs_);
    return request;
  }

  absl::StatusOr<benchmark::FlopCount> Count(
      const benchmark::BenchmarkVariant& variant) const {
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadGraphDef(graph_));
    OPTFARM_ASSIGN_OR_RETURN(const graph::Graph graph,
                             graph::Graph::FromDef(std::move(def)));
    graph::IoRequest request;
    request.outputs = variant.outputs;
    for (const v1::TensorSpec& spec : variant.inputs) {
      graph::InputRequest& input = request.inputs.emplace_back();
      input.name = spec.name();
      if (spec.shape_known()) {
        input.shape = graph::PartialShape(
            std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
      }
    }
    OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                             graph::InferIo(graph, request));
    return benchmark::CountFlops(graph, io);
  }

  // The lines that TensorFlow's benchmark_model prints.
  static std::string FlopsText(
      const benchmark::FlopCount& count,
      const std::vector<v1::Measurement>& measurements) {
    std::string text = absl::StrCat(
        "FLOPs estimate: ", ShortCount(static_cast<int64_t>(count.flops)));
    if (count.unknown_nodes > 0) {
      absl::StrAppend(&text, " (without ", count.unknown_nodes,
                      " nodes of unknown shape; --input_layer_shape may help)");
    }
    for (const v1::Measurement& m : measurements) {
      if (m.mean_us() <= 0) continue;
      absl::StrAppend(
          &text, "\nFLOPs/second with ", ThreadsText(m.threads()), ": ",
          ShortCount(static_cast<int64_t>(count.flops * 1e6 / m.mean_us())));
    }
    return absl::StrCat(text, "\n");
  }

  static void Print(const std::vector<v1::Measurement>& measurements,
                    const std::string& flops, const CommandContext& context) {
    if (context.format == OutputFormat::kJson) {
      *context.out << "["
                   << absl::StrJoin(measurements, ",\n",
                                    [](std::string* out, const auto& m) {
                                      out->append(ProtoToJsonLine(m));
                                    })
                   << "]\n";
      return;
    }
    *context.out << MakeLatencyTable(measurements).ToFormat(context.format);
    if (context.format == OutputFormat::kCsv || measurements.empty()) return;
    const v1::Measurement& first = measurements[0];
    if (!first.op_times().empty()) {
      *context.out << "\nOps of one run with " << ThreadsText(first.threads())
                   << ":\n"
                   << MakeOpsTable(first).ToText();
    }
    if (!first.slowest_nodes().empty()) {
      *context.out << "\n" << MakeNodesTable(first).ToText();
    }
    if (!flops.empty()) *context.out << "\n" << flops;
    std::vector<const v1::Measurement*> all;
    for (const v1::Measurement& m : measurements) all.push_back(&m);
    *context.out << NoiseText(all) << "\n"
                 << ShortProcessor(first) << ", fed "
                 << (first.inputs_fed().empty() ? "nothing"
                                                : first.inputs_fed())
                 << "\n";
  }

  static std::string ShortProcessor(const v1::Measurement& measurement) {
    return absl::StrCat(measurement.device(), ", ",
                        measurement.before().cpu_model());
  }

  std::string graph_, input_layer_, input_layer_shape_, input_layer_type_,
      output_layer_;
  std::vector<std::string> inputs_;
  std::vector<int32_t> threads_ = {1};
  int64_t runs_ = 50;
  absl::Duration min_time_ = absl::Seconds(1);
  absl::Duration max_time_ = absl::Seconds(60);
  int64_t warmup_runs_ = 2;
  int64_t profile_runs_ = 3;
  bool show_flops_ = false;
};

}  // namespace

CommandInfo GraphBenchmarkCommand() {
  return {"graph benchmark",
          "Measure a graph on this machine: latency, memory, time of each op.",
          "optctl graph summarize prints a command line that fits a graph. "
          "Runs go on until both --num_runs and --min_secs are met, or "
          "--max_secs cuts in. Spread is the median absolute deviation.\n"
          "  optctl graph benchmark --graph=m.pb --input_layer=image \\\n"
          "      --input_layer_shape=1,224,224,3 --output_layer=softmax",
          [] { return std::unique_ptr<Command>(new GraphBenchmark); }};
}

}  // namespace optfarm::client_cli
