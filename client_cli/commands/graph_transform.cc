// optctl graph transform: applies a transform string to a graph, as
// TensorFlow's transform_graph does.

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/model_ends.h"
#include "client_cli/tables/transform_explanation.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/checkpoint.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/optimize/report_writer.h"
#include "engine/transforms/machinery/catalog.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::client_cli {
namespace {

constexpr size_t kMostSkippedShown = 5;

// What each step did, in rows.
Table MakeStepsTable(const transforms::PipelineReport& report) {
  using Align = Table::Align;
  Table table({{"step", "STEP"},
               {"nodes_before", "NODES", Align::kRight},
               {"nodes_after", "AFTER", Align::kRight},
               {"constant_bytes_before", "CONSTANTS", Align::kRight},
               {"constant_bytes_after", "AFTER", Align::kRight},
               {"nodes_changed", "CHANGED", Align::kRight},
               {"skipped", "SKIPPED", Align::kRight},
               {"duration_us", "TOOK", Align::kRight}});
  for (const transforms::TransformStats& step : report.steps) {
    table.AddRow(
        {Cell::Text(step.step), Cell::Integer(step.nodes_before),
         Cell::Integer(step.nodes_after),
         Cell(step.constant_bytes_before,
              HumanBytes(step.constant_bytes_before)),
         Cell(step.constant_bytes_after, HumanBytes(step.constant_bytes_after)),
         Cell::Integer(step.report.nodes_changed),
         Cell::Integer(static_cast<int64_t>(step.report.skipped.size())),
         Cell(absl::ToDoubleMicroseconds(step.duration),
              HumanDuration(step.duration))});
  }
  return table;
}

// What the user should hear of besides the table: ignored errors, warnings, and
// the first places that were left alone.
std::string Remarks(const transforms::PipelineReport& report) {
  std::string text;
  for (const transforms::TransformStats& step : report.steps) {
    if (!step.ignored_error.ok()) {
      absl::StrAppend(&text, step.step, ": ignored error: ",
                      std::string(step.ignored_error.message()), "\n");
    }
    for (const std::string& warning : step.report.warnings) {
      absl::StrAppend(&text, step.step, ": ", warning, "\n");
    }
    const auto& skipped = step.report.skipped;
    for (size_t i = 0; i < skipped.size() && i < kMostSkippedShown; ++i) {
      absl::StrAppend(&text, step.step, ": left ", skipped[i].node,
                      " alone: ", skipped[i].reason, "\n");
    }
    if (skipped.size() > kMostSkippedShown) {
      absl::StrAppend(&text, step.step, ": left ",
                      skipped.size() - kMostSkippedShown, " more alone\n");
    }
  }
  return text;
}

// Opened again for every variable: few transforms read any.
absl::StatusOr<tensorflow::TensorProto> ReadVariable(
    const std::string& checkpoint, const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(const auto opened,
                           formats::Checkpoint::Open(checkpoint));
  const formats::SavedTensor* tensor = opened->Find(name);
  if (tensor == nullptr) {
    return absl::NotFoundError(absl::StrCat("the checkpoint '", checkpoint,
                                            "' has no tensor '", name, "'"));
  }
  return opened->Read(*tensor);
}

std::string Explain(const transforms::PipelineReport& report,
                    absl::Span<const transforms::TransformStep> steps,
                    OutputFormat format) {
  std::vector<v1::TransformStats> stats;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    stats.push_back(
        optimize::DescribeStep(report.steps[i], steps[i], /*most_skipped=*/-1));
  }
  switch (format) {
    case OutputFormat::kJson:
      return ExplainAsJson(stats);
    case OutputFormat::kCsv:
      return SkippedTable(stats).ToCsv();
    case OutputFormat::kTable:
      break;
  }
  return ExplainAsText(stats);
}

class GraphTransform final : public Command {
 public:
  // `original`: silent where all goes well, as transform_graph.
  explicit GraphTransform(bool original) : original_(original) {}

  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE", "The graph to read, binary or text.",
                &in_graph_);
    flags->Reads();
    flags->Required();
    flags->Path("out_graph", "FILE", "The graph to write.", &out_graph_);
    flags->Writes();
    flags->Required();
    flags->Text("transforms", "LIST",
                "The transforms, for instance 'fold_constants "
                "quantize_weights(minimum_size=1024)'.",
                &transforms_);
    flags->Required();
    flags->Text("inputs", "A,B",
                "Names of the graph's inputs. Default: those that an ONNX or "
                "TensorFlow Lite file declares; a graph declares none.",
                &inputs_);
    flags->Text("outputs", "A,B",
                "Names of the graph's outputs. Default: as for --inputs.",
                &outputs_);
    flags->Switch("output_as_text", "Write text instead of binary.",
                  &output_as_text_);
    flags->Switch("explain",
                  "Report in full what each transform changed and which "
                  "matches it skipped, with the reasons.",
                  &explain_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const auto steps, ParseSteps());
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadModelDef(in_graph_));
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
    if (!graph.ok()) {
      return Annotate(graph.status(), absl::StrCat("'", in_graph_, "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const ModelEnds ends,
                             ReadModelEnds(*graph, inputs_, outputs_));
    transforms::PipelineOptions options;
    options.checkpoint_reader = ReadVariable;
    OPTFARM_ASSIGN_OR_RETURN(
        const transforms::PipelineReport report,
        transforms::RunTransforms(&*graph, steps, ends.inputs, ends.outputs,
                                  options));
    const std::string name_map =
        transforms::PrintNameMap(transforms::MakeNameMap(report.steps, *graph));
    OPTFARM_RETURN_IF_ERROR(formats::SaveGraphDef(
        std::move(*graph).TakeDef(), out_graph_,
        output_as_text_ ? formats::GraphEncoding::kText
                        : formats::GraphEncoding::kBinary));
    if (!name_map.empty()) {
      const std::string path =
          absl::StrCat(out_graph_, ".", transforms::kNameMapFile);
      OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(path, name_map));
      *context.err << "The nodes' old names are kept in '" << path << "'.\n";
    }
    if (explain_) {
      *context.out << Explain(report, steps, context.format);
      return ExitCode::kOk;
    }
    if (!original_) {
      *context.out << MakeStepsTable(report).ToFormat(context.format);
    }
    *context.err << PrintableText(Remarks(report));
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<std::vector<transforms::TransformStep>> ParseSteps() const {
    absl::StatusOr<std::vector<transforms::TransformStep>> steps =
        transforms::ParseTransforms(transforms_);
    absl::Status status = steps.status();
    if (status.ok()) status = transforms::CheckTransforms(*steps);
    if (status.ok() && steps->empty()) {
      status = absl::InvalidArgumentError("at least one transform is needed");
    }
    if (!status.ok()) {
      return WithExitCode(Annotate(status, "--transforms"), ExitCode::kUsage);
    }
    return steps;
  }

  const bool original_;
  std::string in_graph_, out_graph_, transforms_, inputs_, outputs_;
  bool output_as_text_ = false;
  bool explain_ = false;
};

}  // namespace

CommandInfo GraphTransformCommand() {
  return {"graph transform", "Apply transforms to a graph.",
          "optctl transforms lists them. If one fails, nothing is written, "
          "unless it has ignore_errors=true.\n"
          "  optctl graph transform --in_graph=in.pb --out_graph=out.pb \\\n"
          "      --inputs=input --outputs=softmax \\\n"
          "      --transforms='strip_unused_nodes fold_constants "
          "fold_batch_norms'",
          [] { return std::unique_ptr<Command>(new GraphTransform(false)); }};
}

OriginalTool TransformGraphTool() {
  return {
      .name = "transform_graph", .command = "graph transform", .create = [] {
        return std::unique_ptr<Command>(new GraphTransform(true));
      }};
}

}  // namespace optfarm::client_cli
