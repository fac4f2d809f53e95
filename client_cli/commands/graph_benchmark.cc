// optctl graph benchmark and TensorFlow's benchmark_model: measures one graph
// on this machine, with that tool's flags, lines and tables.

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <ostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/command/benchmark_flags.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/layer_flags.h"
#include "client_cli/flags/tensor_spec_flag.h"
#include "client_cli/local/engine_variants.h"
#include "client_cli/local/laid_out_model.h"
#include "client_cli/tables/benchmark_text.h"
#include "client_cli/tables/noise_text.h"
#include "engine/benchmark/environment.h"
#include "engine/benchmark/model_benchmark.h"
#include "engine/benchmark/trace_file.h"

namespace optfarm::client_cli {
namespace {

// Runs that go into a trace file: enough to compare, few enough for the page.
constexpr int64_t kTraceFileRuns = 10;

using benchmark::ModelBenchmark;
using benchmark::ModelBenchmarkRequest;
using benchmark::RunLimits;

absl::Duration PositiveSeconds(const std::optional<double>& seconds,
                               absl::Duration otherwise) {
  if (!seconds.has_value()) return otherwise;
  return *seconds > 0 ? absl::Seconds(*seconds) : absl::InfiniteDuration();
}

class GraphBenchmark final : public Command {
 public:
  // `original`: TensorFlow's defaults where optctl looks into the graph, and
  // nothing on stdout.
  explicit GraphBenchmark(bool original) : original_(original) {
    if (!original) return;
    graph_ = "/data/local/tmp/tensorflow_inception_graph.pb";
    input_layer_ = "input:0";
    input_layer_shape_ = "1,224,224,3";
    input_layer_type_ = "float";
    output_layer_ = "output:0";
  }

  void DeclareFlags(FlagSet* flags) override {
    flags->Path("graph", "FILE", "The graph, binary or text.", &graph_);
    flags->Reads();
    if (!original_) flags->Required();
    flags->Text("init_ops", "A,B", "Nodes to run once after loading.",
                &init_ops_);
    DeclareTensorFlags(flags);
    DeclareRunFlags(flags);
    DeclareReportFlags(flags);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    std::ostream& lines = original_ || context.format != OutputFormat::kTable
                              ? *context.err
                              : *context.out;
    ModelBenchmarkRequest request;
    OPTFARM_RETURN_IF_ERROR(FillModel(&request.model));
    OPTFARM_RETURN_IF_ERROR(FillRuns(&request));
    OPTFARM_RETURN_IF_ERROR(FillInputFiles(&request));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<int> threads,
                             ParseThreads(num_threads_));
    if (threads.size() > 1 && WantsReports()) {
      return UsageError(
          "--output_prefix: report files need a single thread count");
    }
    if (device_gflops_ && *device_gflops_ <= 0) {
      return UsageError("--device_gflops: give a number above 0");
    }
    OPTFARM_ASSIGN_OR_RETURN(const auto engines, ParseEngineFlags(engines_));
    if (!engines.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(const auto measured,
                               MeasureBeside(engines, request, threads));
      PrintBeside(measured, context);
      return ExitCode::kOk;
    }
    request.log = [&lines](absl::string_view line) {
      lines << PrintableText(line) << std::endl;
    };
    PrintSettings(lines);
    std::vector<ModelBenchmark> benchmarks;
    for (const int count : threads) {
      request.threads = count;
      absl::StatusOr<ModelBenchmark> done =
          benchmark::RunModelBenchmark(request);
      if (!done.ok()) return InFlagsOfThisTool(done.status());
      PrintProfile(*done, lines);
      benchmarks.push_back(*std::move(done));
    }
    OPTFARM_RETURN_IF_ERROR(WriteFiles(benchmarks));
    if (!original_) Print(benchmarks, context);
    return ExitCode::kOk;
  }

 private:
  void DeclareTensorFlags(FlagSet* flags) {
    flags->Text("input_layer", "A,B",
                absl::StrCat("Tensors to feed.", Default("input:0")),
                &input_layer_);
    flags->Text("input_layer_shape", "1,2:3,4",
                absl::StrCat("Their shapes, in the same order.",
                             original_ ? " Default: 1,224,224,3."
                                       : " Default: the graph's, with 1 for an "
                                         "unknown first dimension."),
                &input_layer_shape_);
    flags->Text("input_layer_type", "T,T",
                absl::StrCat("Their types: float, uint8, int32, bool, ...",
                             Default("float")),
                &input_layer_type_);
    flags->Text("input_layer_values", "1,2:3",
                "First elements of each input; the rest is 0. Default: seeded "
                "random values.",
                &input_layer_values_);
    flags->Texts("input", "NAME=FILE.npy",
                 "Feed this file instead of random values.", &inputs_);
    flags->Text("input_layer_value_files", "NAME:FILE,...",
                "The same, from an .npy file or from the raw bytes of the "
                "elements.",
                &value_files_);
    flags->Text("input_layer_value_range", "NAME,LOW,HIGH:...",
                "Random values of an input are between LOW and HIGH.",
                &value_ranges_);
    flags->Text("output_layer", "A,B",
                absl::StrCat("Tensors to fetch.", Default("output:0")),
                &output_layer_);
    flags->Text("target_layer", "A,B",
                "Nodes to run for their side effects, without fetching their "
                "outputs.",
                &target_layer_);
    if (original_) return;
    // What errors about the graph tell to give.
    flags->Texts("inputs", "NAME:1x2x3",
                 "Tensors to feed with their shapes, in the format of other "
                 "commands; instead of --input_layer.",
                 &tensor_specs_);
    flags->Text("outputs", "A,B", "The same as --output_layer.",
                &output_layer_);
  }

  void DeclareRunFlags(FlagSet* flags) {
    constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
    flags->Integer(
        "max_num_runs",
        "Maximum number of runs of each phase; 0 or less: until the time is "
        "over. Default: 1000.",
        &max_num_runs_, kLeast);
    flags->Number("max_time",
                  "Maximum seconds of each phase; 0 or less: no limit. "
                  "Default: 10.",
                  &max_time_);
    flags->Integer("num_runs",
                   "A phase ends early once it has this many runs and "
                   "--min_secs.",
                   &num_runs_, 0);
    flags->Number("min_secs", "A phase ends early; see --num_runs.",
                  &min_secs_);
    flags->Number("max_secs", "The same as --max_time.", &max_secs_);
    flags->Number("inference_delay", "Seconds to sleep after each run.",
                  &inference_delay_);
    flags->Number("inter_benchmark_delay", "Seconds to sleep between phases.",
                  &phase_delay_);
    flags->Text("num_threads", "N,N",
                "Threads; -1: one for each processor. Several counts are "
                "benchmarked one after the other. Default: -1.",
                &num_threads_);
    flags->Text(
        "cpu_affinity", "N,N",
        "Processors to run on, by number; big: the fastest. Default: all.",
        &processors_);
    flags->Integer("warmup_runs", "Runs before measuring. Default: 1.",
                   &warmup_runs_, kLeast);
    flags->Integer("profile_runs",
                   "Maximum number of runs that are profiled op by op after "
                   "the measured ones; 0: no profile. Default: the number of "
                   "measured runs.",
                   &profile_runs_, 0);
  }

  void DeclareReportFlags(FlagSet* flags) {
    flags->Text("benchmark_name", "NAME", "Name in the report files.",
                &benchmark_name_);
    flags->Path("output_prefix", "PATH",
                "Prefix of the report files' names. They are written if this "
                "and --benchmark_name are given.",
                &output_prefix_);
    flags->Switch("show_sizes", "Print each node's output shapes.",
                  &show_sizes_);
    flags->Switch("show_run_order", "Print the nodes in run order.",
                  &profile_.show_run_order);
    flags->Integer("run_order_limit", "Number of nodes to print; 0: all.",
                   &run_order_limit_);
    flags->Switch("show_time", "Print the slowest nodes.", &profile_.show_time);
    flags->Integer("time_limit",
                   "Number of nodes to print; 0: all. Default: 10.",
                   &time_limit_);
    flags->Switch("show_memory", "Print the nodes with the largest outputs.",
                  &profile_.show_memory);
    flags->Integer("memory_limit",
                   "Number of nodes to print; 0: all. Default: 10.",
                   &memory_limit_);
    flags->Switch("show_type", "Print the time of each op type.",
                  &profile_.show_type);
    flags->Switch("show_summary", "Print time and memory of a run.",
                  &profile_.show_summary);
    flags->Switch("show_flops",
                  "Also estimate floating-point operations per run and per "
                  "second.",
                  &show_flops_);
    if (!original_) {
      flags->Texts("engine", "NAME:FILE", kEngineHelp, &engines_);
      flags->Switch("explain",
                    "Also list which fusions took which nodes, and what they "
                    "became. OPTFARM_WITHOUT=NAME,... leaves fusions out.",
                    &explain_);
    }
    flags->Number("device_gflops",
                  "Also estimate the best latency on a device with this many "
                  "billion operations per second.",
                  &device_gflops_);
    flags->Switch("report_peak_memory_footprint",
                  "Sample this process's memory during the benchmark and "
                  "print the peak.",
                  &report_peak_memory_);
    flags->Integer("memory_footprint_check_interval_ms",
                   "Sampling interval in milliseconds. Default: 50.",
                   &memory_check_interval_ms_, 1);
    flags->Path("trace_file", "FILE",
                "Write the first profiled runs for Chrome's tracing page.",
                &trace_file_);
  }

  std::string Default(absl::string_view original) const {
    return absl::StrCat(
        " Default: ", original_ ? original : "inferred from the graph", ".");
  }

  // The original has other flags for the model's ends.
  absl::Status InFlagsOfThisTool(const absl::Status& status) const {
    if (!original_) return status;
    return absl::Status(
        status.code(),
        absl::StrReplaceAll(status.message(),
                            {{"--inputs: ", "--input_layer: "},
                             {"--outputs: ", "--output_layer: "}}));
  }

  bool WantsReports() const {
    return !benchmark_name_.empty() && !output_prefix_.empty();
  }

  absl::StatusOr<std::vector<v1::TensorSpec>> ParseInputs() const {
    if (tensor_specs_.empty()) {
      return ParseLayerFlags(input_layer_, input_layer_type_,
                             input_layer_shape_);
    }
    if (!absl::StrCat(input_layer_, input_layer_type_, input_layer_shape_)
             .empty()) {
      return UsageError("--inputs: give it or --input_layer, not both");
    }
    absl::StatusOr<std::vector<v1::TensorSpec>> inputs =
        ParseTensorSpecs(tensor_specs_);
    if (!inputs.ok()) return Annotate(inputs.status(), "--inputs");
    return inputs;
  }

  absl::Status FillModel(benchmark::BenchmarkVariant* model) const {
    model->name = "graph";
    model->graph_path = graph_;
    OPTFARM_ASSIGN_OR_RETURN(model->inputs, ParseInputs());
    for (v1::TensorSpec& spec : model->inputs) {
      for (const int64_t dim : spec.shape()) {
        if (dim >= 0) continue;
        return UsageError(absl::StrCat(
            "--input_layer_shape: input '", spec.name(),
            "' has an unknown size (-1); give the size to benchmark with"));
      }
      // An empty shape is a scalar's for the original.
      if (original_) spec.set_shape_known(true);
    }
    OPTFARM_ASSIGN_OR_RETURN(model->input_values,
                             ParseValues(input_layer_values_));
    if (model->input_values.size() > model->inputs.size()) {
      return UsageError(absl::StrCat(
          "--input_layer_values has ", model->input_values.size(),
          " lists, --input_layer ", model->inputs.size(), " names"));
    }
    model->outputs = absl::StrSplit(output_layer_, ',', absl::SkipEmpty());
    std::vector<std::string> named = model->outputs;
    for (const v1::TensorSpec& spec : model->inputs) {
      named.push_back(spec.name());
    }
    model->load_graph = [named](const std::string& path) {
      return LoadLaidOut(path, named);
    };
    model->init_ops = absl::StrSplit(init_ops_, ',', absl::SkipEmpty());
    model->targets = absl::StrSplit(target_layer_, ',', absl::SkipEmpty());
    return absl::OkStatus();
  }

  absl::Status FillRuns(ModelBenchmarkRequest* request) const {
    if (max_time_ && max_secs_) {
      return UsageError(
          "--max_time and --max_secs mean the same; give one of them");
    }
    request->timed = {
        max_num_runs_,
        PositiveSeconds(max_secs_ ? max_secs_ : max_time_, absl::Seconds(10)),
        num_runs_, absl::Seconds(std::max(min_secs_.value_or(0), 0.0))};
    request->traced = request->timed;
    if (profile_runs_ == 0) {
      request->traced.reset();
    } else if (profile_runs_ > 0) {
      request->traced->max_runs = profile_runs_;
    }
    request->warmup_runs = warmup_runs_;
    request->run_delay = absl::Seconds(inference_delay_.value_or(-1));
    request->phase_delay = absl::Seconds(phase_delay_.value_or(-1));
    request->profile = profile_;
    request->profile.run_order_limit = static_cast<int>(run_order_limit_);
    request->profile.time_limit = static_cast<int>(time_limit_);
    request->profile.memory_limit = static_cast<int>(memory_limit_);
    if (report_peak_memory_) {
      request->memory_check_interval =
          absl::Milliseconds(memory_check_interval_ms_);
    }
    OPTFARM_ASSIGN_OR_RETURN(request->processors, ParseProcessors(processors_));
    request->kept_traces = trace_file_.empty() ? 0 : kTraceFileRuns;
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    request->device = host;
    request->explain_fusions = explain_;
    request->build_version = OPTFARM_VERSION;
    return absl::OkStatus();
  }

  absl::Status FillInputFiles(ModelBenchmarkRequest* request) const {
    for (const std::string& input : inputs_) {
      const size_t equals = input.find('=');
      if (equals == std::string::npos) {
        return UsageError(absl::StrCat("--input: '", input,
                                       "' is not of the form NAME=FILE.npy"));
      }
      request->input_files.push_back(
          {input.substr(0, equals), ExpandHome(input.substr(equals + 1))});
    }
    OPTFARM_ASSIGN_OR_RETURN(const auto files, ParseValueFiles(value_files_));
    request->input_files.insert(request->input_files.end(), files.begin(),
                                files.end());
    OPTFARM_ASSIGN_OR_RETURN(request->input_ranges,
                             ParseValueRanges(value_ranges_));
    return absl::OkStatus();
  }

  // What benchmark_model begins with.
  void PrintSettings(std::ostream& out) const {
    const auto number = [](const std::optional<double>& value) {
      return absl::StrFormat("%.1f", value.value_or(-1));
    };
    out << "Graph: [" << graph_ << "]\n"
        << "Init ops:" << init_ops_ << "\n"
        << "Input layers: [" << input_layer_ << "]\n"
        << "Input shapes: [" << input_layer_shape_ << "]\n"
        << "Input types: [" << input_layer_type_ << "]\n"
        << "Output layers: [" << output_layer_ << "]\n"
        << "Target layers: [" << target_layer_ << "]\n"
        << "Num runs: [" << max_num_runs_ << "]\n"
        << "Inter-inference delay (seconds): [" << number(inference_delay_)
        << "]\n"
        << "Inter-benchmark delay (seconds): [" << number(phase_delay_) << "]\n"
        << "Num threads: [" << num_threads_ << "]\n"
        << "Benchmark name: [" << benchmark_name_ << "]\n"
        << "Output prefix: [" << output_prefix_ << "]\n"
        << "Show sizes: [" << show_sizes_ << "]\n"
        << "Warmup runs: [" << warmup_runs_ << "]\n";
  }

  void PrintProfile(const ModelBenchmark& done, std::ostream& out) const {
    // Names come from a model that somebody else made.
    if (!done.traced.empty()) {
      out << PrintableText(done.profile.Report());
      if (show_sizes_) out << PrintableText(done.profile.OutputSizes());
    }
    if (show_flops_) out << FlopsLines(done);
    if (report_peak_memory_) {
      out << absl::StrFormat(
          "Peak memory seen, every %d ms: %.1f MB\n", memory_check_interval_ms_,
          static_cast<double>(done.sampled_peak_bytes) * 1e-6);
    }
  }

  absl::Status WriteFiles(const std::vector<ModelBenchmark>& benchmarks) const {
    if (WantsReports()) {
      OPTFARM_RETURN_IF_ERROR(benchmark::WriteReports(
          benchmarks[0], output_prefix_, benchmark_name_));
    }
    if (trace_file_.empty()) return absl::OkStatus();
    return WriteFileAtomically(
        trace_file_,
        benchmark::TraceFileJson(benchmarks[0].traces, BaseName(graph_)));
  }

  // What optctl adds to the original's lines.
  void Print(const std::vector<ModelBenchmark>& benchmarks,
             const CommandContext& context) const {
    if (context.format == OutputFormat::kJson) {
      *context.out << BenchmarksToJson(benchmarks, device_gflops_);
      return;
    }
    const ModelBenchmark& first = benchmarks[0];
    if (context.format == OutputFormat::kCsv) {
      *context.out << MakeLatencyTable(benchmarks).ToCsv();
      return;
    }
    if (show_flops_ && !first.flops.ops.empty()) {
      *context.out << "\n" << MakeFlopsTable(first.flops).ToText();
    }
    if (explain_) *context.out << FusionText(first.fused_nodes);
    if (device_gflops_) {
      *context.out << DeviceEstimate(first.flops, *device_gflops_);
    }
    *context.out << "\n" << MakeLatencyTable(benchmarks).ToText();
    std::vector<const v1::Measurement*> all;
    for (const ModelBenchmark& done : benchmarks) {
      all.push_back(&done.measurement);
    }
    const v1::Measurement& m = first.measurement;
    *context.out << NoiseText(all) << "\n"
                 << m.device() << ", " << m.before().cpu_model() << ", fed "
                 << (m.inputs_fed().empty() ? "nothing" : m.inputs_fed())
                 << "\n";
  }

  const bool original_;
  std::string graph_, init_ops_, input_layer_, input_layer_shape_,
      input_layer_type_, input_layer_values_, output_layer_, target_layer_;
  std::vector<std::string> inputs_, tensor_specs_, engines_;
  std::string value_files_, value_ranges_, processors_;
  std::string num_threads_ = "-1";
  int64_t max_num_runs_ = 1000;
  int64_t num_runs_ = 0;
  int64_t warmup_runs_ = 1;
  // -1: as many as are measured.
  int64_t profile_runs_ = -1;
  std::optional<double> max_time_, max_secs_, min_secs_, inference_delay_,
      phase_delay_, device_gflops_;
  benchmark::StatSummarizerOptions profile_;
  int64_t run_order_limit_ = 0, time_limit_ = 10, memory_limit_ = 10;
  std::string benchmark_name_, output_prefix_, trace_file_;
  bool show_sizes_ = false, show_flops_ = false, report_peak_memory_ = false;
  bool explain_ = false;
  int64_t memory_check_interval_ms_ = 50;
};

}  // namespace

CommandInfo GraphBenchmarkCommand() {
  return {"graph benchmark",
          "Benchmark a graph on this machine: latency, memory, time of each "
          "op.",
          "Flags and output are those of TensorFlow's benchmark_model. optctl "
          "graph summarize prints a matching command line for a graph. Spread "
          "is the median absolute deviation.\n"
          "  optctl graph benchmark --graph=m.pb --input_layer=image \\\n"
          "      --input_layer_shape=1,224,224,3 --output_layer=softmax",
          [] { return std::unique_ptr<Command>(new GraphBenchmark(false)); }};
}

OriginalTool BenchmarkModelTool() {
  return {
      .name = "benchmark_model", .command = "graph benchmark", .create = [] {
        return std::unique_ptr<Command>(new GraphBenchmark(true));
      }};
}

}  // namespace optfarm::client_cli
