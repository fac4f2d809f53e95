// optctl graph compat: what in a graph a runtime does not have.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/infer_io.h"
#include "engine/inspect/compatibility.h"

namespace optfarm::client_cli {
namespace {

constexpr char kTensorFlow14[] = "tensorflow-1.4";

class GraphCompat final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE", "The graph, binary or text.", &in_graph_);
    flags->Required();
    flags->Choice("target",
                  "Where the graph should run: in this build's runtime, or in "
                  "TensorFlow 1.4. Default: runtime.",
                  {"runtime", kTensorFlow14}, &target_);
    flags->Text("inputs", "A,B",
                "Where the graph is fed; nodes before these do not count.",
                &inputs_);
    flags->Text("outputs", "A,B",
                "The graph's outputs. Default: inferred from the graph.",
                &outputs_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadModelDef(in_graph_));
    const std::string where = absl::StrCat("'", in_graph_, "'");
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
    if (!graph.ok()) return Annotate(graph.status(), where);
    OPTFARM_ASSIGN_OR_RETURN(const auto inputs,
                             FindNodes("inputs", inputs_, *graph));
    OPTFARM_ASSIGN_OR_RETURN(auto outputs,
                             FindNodes("outputs", outputs_, *graph));
    if (outputs.empty()) {
      const auto found = graph::FindOutputs(*graph);
      if (found.ok()) {
        for (const graph::Endpoint& output : *found) {
          outputs.push_back(output.node);
        }
      }
    }
    const std::vector<inspect::Incompatibility> problems =
        inspect::FindIncompatibilities(
            *graph, inputs, outputs,
            target_ == kTensorFlow14
                ? inspect::CompatibilityTarget::kTensorFlow14
                : inspect::CompatibilityTarget::kRuntime);
    if (context.format == OutputFormat::kTable && problems.empty()) {
      *context.out << "Nothing is missing: all " << graph->node_count()
                   << " nodes are known to " << target_ << ".\n";
    } else {
      *context.out << MakeTable(problems).ToFormat(context.format);
    }
    return problems.empty() ? ExitCode::kOk : ExitCode::kJobFailed;
  }

 private:
  static absl::StatusOr<std::vector<graph::NodeId>> FindNodes(
      absl::string_view flag, const std::string& text,
      const graph::Graph& graph) {
    std::vector<graph::NodeId> ids;
    absl::StatusOr<std::vector<graph::TensorName>> names =
        graph::ParseTensorNames(text);
    if (!names.ok()) {
      return Annotate(names.status(), absl::StrCat("--", flag));
    }
    for (const graph::TensorName& name : *names) {
      const absl::StatusOr<graph::NodeId> id = graph.Get(name.node);
      if (!id.ok()) return Annotate(id.status(), absl::StrCat("--", flag));
      ids.push_back(*id);
    }
    return ids;
  }

  static Table MakeTable(
      const std::vector<inspect::Incompatibility>& problems) {
    Table table({{"op", "OP"},
                 {"problem", "PROBLEM"},
                 {"nodes", "NODES", Table::Align::kRight},
                 {"example", "EXAMPLE"},
                 {"remedy", "REMEDY"}});
    for (const inspect::Incompatibility& problem : problems) {
      table.AddRow(
          {Cell::Text(problem.op), Cell::Text(problem.problem),
           Cell::Integer(problem.nodes), Cell::Text(problem.example),
           problem.remedy.empty() ? Cell() : Cell::Text(problem.remedy)});
    }
    return table;
  }

  std::string in_graph_, inputs_, outputs_;
  std::string target_ = "runtime";
};

}  // namespace

CommandInfo GraphCompatCommand() {
  return {"graph compat",
          "List ops, types and attributes that a runtime does not support.",
          "Each line names the transform that removes the problem, if there "
          "is one. Exits with 1 if anything is missing. For TensorFlow, the "
          "command knows what came after 1.4 and which dtypes the ops' "
          "signatures allow, but not which kernels a build contains.\n"
          "  optctl graph compat --in_graph=m.pb --target=tensorflow-1.4",
          [] { return std::unique_ptr<Command>(new GraphCompat); }};
}

}  // namespace optfarm::client_cli
