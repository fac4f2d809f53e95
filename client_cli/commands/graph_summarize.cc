// optctl graph summarize: what a graph holds and how to run it.

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/graph_summary.h"
#include "engine/formats/graph_file.h"

namespace optfarm::client_cli {
namespace {

class GraphSummarize final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE", "The graph, binary or text.", &in_graph_);
    flags->Required();
    flags->Switch("print_structure",
                  "Also list all nodes in the order of execution.",
                  &print_structure_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph,
                             formats::LoadGraphDef(in_graph_));
    const GraphSummary summary = SummarizeGraph(graph, in_graph_);
    *context.out << PrintableText(summary.text);
    for (const std::string& line : summary.invalid_inputs) {
      *context.out << PrintableLine(line) << "\n";
    }
    if (!summary.invalid_inputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", in_graph_, "' has ", summary.invalid_inputs.size(),
                       " inputs that name nodes it does not have"));
    }
    if (print_structure_) {
      OPTFARM_ASSIGN_OR_RETURN(const std::string structure,
                               PrintGraphStructure(graph));
      *context.out << PrintableText(structure);
    }
    return ExitCode::kOk;
  }

 private:
  std::string in_graph_;
  bool print_structure_ = false;
};

}  // namespace

CommandInfo GraphSummarizeCommand() {
  return {"graph summarize",
          "Show a graph's inputs, outputs, ops and parameters.",
          "The lines are those of TensorFlow's summarize_graph.",
          [] { return std::unique_ptr<Command>(new GraphSummarize); }};
}

OriginalTool SummarizeGraphTool() {
  return {.name = "summarize_graph",
          .command = "graph summarize",
          .create = GraphSummarizeCommand().create};
}

}  // namespace optfarm::client_cli
