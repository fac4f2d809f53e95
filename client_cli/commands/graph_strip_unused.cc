// optctl graph strip-unused: what lies between inputs and outputs of a graph,
// as TensorFlow's strip_unused.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/inference_flags.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

class GraphStripUnused final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("input_graph", "FILE", "The graph, binary or text.",
                &input_graph_);
    flags->Reads();
    flags->Required();
    flags->Switch("input_binary",
                  "Ignored: the format is detected from the file.",
                  &input_binary_);
    flags->Path("output_graph", "FILE", "The graph to write.", &output_graph_);
    flags->Writes();
    flags->Required();
    flags->Switch("output_binary",
                  "Write binary; with =false, text. Default: true.",
                  &output_binary_);
    flags->Text("input_node_names", "A,B", "Nodes to turn into Placeholders.",
                &inputs_);
    flags->Required();
    flags->Text("output_node_names", "A,B",
                "Outputs; everything they need is kept.", &outputs_);
    flags->Required();
    flags->Text("placeholder_type_enum", "N,N",
                "The Placeholders' types, one for all or one each, by the "
                "number of TensorFlow's enum or by name. Default: 1, float.",
                &types_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    OPTFARM_ASSIGN_OR_RETURN(const transforms::GraphBorder border,
                             ParseGraphBorder(inputs_, outputs_, types_));
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadGraphDef(input_graph_));
    const std::string where = absl::StrCat("'", input_graph_, "'");
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
    if (!graph.ok()) return Annotate(graph.status(), where);
    const absl::Status stripped = transforms::StripUnused(border, &*graph);
    if (!stripped.ok()) {
      // A wrong name is wrong usage, not a missing file.
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", std::string(stripped.message())));
    }
    const int nodes = graph->node_count();
    OPTFARM_RETURN_IF_ERROR(
        formats::SaveGraphDef(std::move(*graph).TakeDef(), output_graph_,
                              output_binary_ ? formats::GraphEncoding::kBinary
                                             : formats::GraphEncoding::kText));
    if (context.format == OutputFormat::kJson) {
      nlohmann::ordered_json json;
      json["nodes"] = nodes;
      *context.out << JsonText(json);
    } else {
      *context.out << nodes << " ops in the final graph.\n";
    }
    return ExitCode::kOk;
  }

 private:
  std::string input_graph_, output_graph_, inputs_, outputs_;
  std::string types_ = "1";
  bool input_binary_ = false;
  bool output_binary_ = true;
};

}  // namespace

CommandInfo GraphStripUnusedCommand() {
  return {
      "graph strip-unused",
      "Remove everything that is not between inputs and outputs.",
      "The inputs become Placeholders. The transform strip_unused_nodes does "
      "the same within a list of transforms.\n"
      "  optctl graph strip-unused --input_graph=m.pb --output_graph=o.pb "
      "\\\n"
      "      --input_node_names=image --output_node_names=softmax",
      [] { return std::unique_ptr<Command>(new GraphStripUnused); }};
}

OriginalTool StripUnusedTool() {
  return {.name = "strip_unused",
          .command = "graph strip-unused",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonExitCodes,
          .create = GraphStripUnusedCommand().create};
}

}  // namespace optfarm::client_cli
