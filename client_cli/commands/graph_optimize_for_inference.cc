// optctl graph optimize-for-inference: the chain of TensorFlow's
// optimize_for_inference.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/inference_flags.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

class GraphOptimizeForInference final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("input", "FILE", "The graph, binary or text.", &input_);
    flags->Reads();
    flags->Required();
    flags->Path("output", "FILE", "The graph to write.", &output_);
    flags->Writes();
    flags->Required();
    flags->Text("input_names", "A,B", "Nodes to turn into Placeholders.",
                &inputs_);
    flags->Required();
    flags->Text("output_names", "A,B", "Outputs; everything they need is kept.",
                &outputs_);
    flags->Required();
    flags->Switch("frozen_graph",
                  "Write binary; with =false, text. Default: true.",
                  &frozen_graph_);
    flags->Text("placeholder_type_enum", "N,N",
                "The Placeholders' types, one for all or one each, by the "
                "number of TensorFlow's enum or by name. Default: 1, float.",
                &types_);
    flags->Switch("toco_compatible",
                  "Do not fuse resizing and padding into convolutions, as "
                  "TensorFlow Lite's converter requires.",
                  &toco_compatible_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    OPTFARM_ASSIGN_OR_RETURN(const transforms::GraphBorder border,
                             ParseGraphBorder(inputs_, outputs_, types_));
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadGraphDef(input_));
    const std::string where = absl::StrCat("'", input_, "'");
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
    if (!graph.ok()) return Annotate(graph.status(), where);
    const int before = graph->node_count();
    const auto report =
        transforms::OptimizeForInference(border, !toco_compatible_, &*graph);
    if (!report.ok()) {
      // A wrong name is wrong usage, not a missing file.
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", std::string(report.status().message())));
    }
    const int after = graph->node_count();
    OPTFARM_RETURN_IF_ERROR(
        formats::SaveGraphDef(std::move(*graph).TakeDef(), output_,
                              frozen_graph_ ? formats::GraphEncoding::kBinary
                                            : formats::GraphEncoding::kText));
    for (const transforms::TransformStats& step : report->steps) {
      for (const auto& skipped : step.report.skipped) {
        *context.err << PrintableLine(absl::StrCat(step.step, ": left ",
                                                   skipped.node,
                                                   " alone: ", skipped.reason))
                     << "\n";
      }
    }
    if (context.format == OutputFormat::kJson) {
      nlohmann::ordered_json json;
      json["nodes_before"] = before;
      json["nodes_after"] = after;
      *context.out << JsonText(json);
    }
    return ExitCode::kOk;
  }

 private:
  std::string input_, output_, inputs_, outputs_;
  std::string types_ = "1";
  bool frozen_graph_ = true;
  bool toco_compatible_ = false;
};

}  // namespace

CommandInfo GraphOptimizeForInferenceCommand() {
  return {
      "graph optimize-for-inference",
      "Remove training nodes from a frozen graph.",
      "Removes unused and training nodes, folds old-style batch norms, "
      "fuses resizing and padding into convolutions.\n"
      "  optctl graph optimize-for-inference --input=m.pb --output=o.pb \\"
      "\n      --input_names=image --output_names=softmax",
      [] { return std::unique_ptr<Command>(new GraphOptimizeForInference); }};
}

OriginalTool OptimizeForInferenceTool() {
  return {.name = "optimize_for_inference",
          .command = "graph optimize-for-inference",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonMainExitCodes,
          .create = GraphOptimizeForInferenceCommand().create};
}

}  // namespace optfarm::client_cli
