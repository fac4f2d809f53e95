// optctl graph dot: a graph in graphviz's language, and as a picture.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/local/graphviz.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/dot.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

class GraphDot final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("graph", "FILE", "The graph, binary or text.", &graph_);
    flags->Reads();
    flags->Required();
    flags->Switch("input_binary",
                  "Ignored: the format is detected from the file.",
                  &input_binary_);
    flags->Path("dot_output", "FILE", "The DOT file to write.", &dot_output_);
    flags->Path("svg", "FILE",
                "Also draw the graph to this file; uses graphviz if "
                "installed.",
                &svg_);
    flags->Duration("svg_time", "Time limit for the drawing. Default: 5m.",
                    &svg_time_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    if (dot_output_.empty() && svg_.empty()) {
      return UsageError("--dot_output or --svg must say what to write");
    }
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph,
                             formats::LoadModelDef(graph_));
    const std::string dot = formats::GraphToDot(graph);
    nlohmann::ordered_json json;
    if (!dot_output_.empty()) {
      OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(dot_output_, dot));
      Tell("DOT", dot_output_, context);
      json["dot"] = dot_output_;
    }
    if (!svg_.empty()) {
      OPTFARM_RETURN_IF_ERROR(DrawSvg(dot, svg_, svg_time_));
      Tell("SVG", svg_, context);
      json["svg"] = svg_;
    }
    if (context.format == OutputFormat::kJson) *context.out << JsonText(json);
    return ExitCode::kOk;
  }

 private:
  static void Tell(absl::string_view kind, const std::string& file,
                   const CommandContext& context) {
    if (context.format == OutputFormat::kJson) return;
    *context.out << PrintableLine(
                        absl::StrCat("Created ", kind, " file '", file, "'."))
                 << "\n";
  }

  std::string graph_, dot_output_, svg_;
  bool input_binary_ = true;
  absl::Duration svg_time_ = absl::Minutes(5);
};

}  // namespace

CommandInfo GraphDotCommand() {
  return {"graph dot", "Write a graph as a DOT file, or draw it.",
          "  optctl graph dot --graph=m.pb --dot_output=m.dot --svg=m.svg",
          [] { return std::unique_ptr<Command>(new GraphDot); }};
}

OriginalTool GraphToDotTool() {
  return {.name = "graph_to_dot",
          .command = "graph dot",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonMainExitCodes,
          .create = GraphDotCommand().create};
}

}  // namespace optfarm::client_cli
