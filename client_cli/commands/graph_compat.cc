// optctl graph compat: what in a graph a runtime does not have.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/model_ends.h"
#include "engine/export/runtime_support.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/infer_io.h"
#include "engine/inspect/compatibility.h"

namespace optfarm::client_cli {
namespace {

// What our own runtime was called here before others had names.
constexpr char kOurs[] = "runtime";

std::vector<std::string> TargetNames() {
  std::vector<std::string> names = {kOurs};
  for (const exporting::RuntimeTarget& target : exporting::RuntimeTargets()) {
    names.push_back(target.name);
  }
  return names;
}

class GraphCompat final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE",
                "The model: a graph, an ONNX or a TensorFlow Lite file.",
                &in_graph_);
    flags->Reads();
    flags->Required();
    flags->Choice("target",
                  "Where the model should run; runtime and optfarm are this "
                  "build's own runtime. Default: runtime.",
                  TargetNames(), &target_);
    flags->Text("inputs", "A,B",
                "Where the graph is fed; nodes before these do not count.",
                &inputs_);
    flags->Text("outputs", "A,B",
                "The graph's outputs. Default: inferred from the graph.",
                &outputs_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(
        const exporting::RuntimeTarget* target,
        exporting::FindRuntimeTarget(target_ == kOurs ? "optfarm" : target_));
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                             formats::LoadModelDef(in_graph_));
    const std::string where = absl::StrCat("'", in_graph_, "'");
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
    if (!graph.ok()) return Annotate(graph.status(), where);
    const bool is_graph = target->format == exporting::ModelFormat::kGraph;
    OPTFARM_ASSIGN_OR_RETURN(
        const std::vector<inspect::Incompatibility> problems,
        is_graph ? FindInGraph(*graph, *target)
                 : FindInFile(*graph, *target, where));
    if (context.format == OutputFormat::kTable && problems.empty()) {
      *context.out << "Nothing is missing: all " << graph->node_count()
                   << " nodes are known to " << target_ << ".\n";
      if (!is_graph) {
        *context.out << "optctl graph convert makes the file, ."
                     << exporting::FormatName(target->format) << ".\n";
      }
    } else {
      *context.out << MakeTable(problems).ToFormat(context.format);
    }
    return problems.empty() ? ExitCode::kOk : ExitCode::kJobFailed;
  }

 private:
  using Problems = std::vector<inspect::Incompatibility>;

  // Works on graphs too that no runtime can be asked to run.
  absl::StatusOr<Problems> FindInGraph(
      const graph::Graph& graph, const exporting::RuntimeTarget& target) const {
    OPTFARM_ASSIGN_OR_RETURN(const ModelEnds ends,
                             ReadModelEnds(graph, inputs_, outputs_));
    OPTFARM_ASSIGN_OR_RETURN(const auto inputs,
                             FindNodes("inputs", ends.inputs, graph));
    OPTFARM_ASSIGN_OR_RETURN(auto outputs,
                             FindNodes("outputs", ends.outputs, graph));
    if (outputs.empty()) {
      const auto found = graph::FindOutputs(graph);
      if (found.ok()) {
        for (const graph::Endpoint& output : *found) {
          outputs.push_back(output.node);
        }
      }
    }
    return inspect::FindIncompatibilities(graph, inputs, outputs,
                                          target.compatibility);
  }

  absl::StatusOr<Problems> FindInFile(const graph::Graph& graph,
                                      const exporting::RuntimeTarget& target,
                                      const std::string& where) const {
    graph::IoRequest request;
    for (const absl::string_view name :
         absl::StrSplit(inputs_, ',', absl::SkipEmpty())) {
      request.inputs.push_back({std::string(name), {}, {}});
    }
    request.outputs = absl::StrSplit(outputs_, ',', absl::SkipEmpty());
    const absl::StatusOr<graph::GraphIo> io = graph::InferIo(graph, request);
    if (!io.ok()) return Annotate(io.status(), where);
    return exporting::FindProblems(graph, *io, target);
  }

  static absl::StatusOr<std::vector<graph::NodeId>> FindNodes(
      absl::string_view flag, const std::vector<graph::TensorName>& names,
      const graph::Graph& graph) {
    std::vector<graph::NodeId> ids;
    for (const graph::TensorName& name : names) {
      const absl::StatusOr<graph::NodeId> id = graph.Get(name.node);
      if (!id.ok()) return Annotate(id.status(), absl::StrCat("--", flag));
      ids.push_back(*id);
    }
    return ids;
  }

  static Table MakeTable(
      const std::vector<inspect::Incompatibility>& problems) {
    Table table({{"op", "OP"},
                 {.name = "problem", .title = "PROBLEM", .folds = true},
                 {"nodes", "NODES", Table::Align::kRight},
                 {"example", "EXAMPLE", Table::Align::kLeft, false, 24},
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
  std::string target_ = kOurs;
};

}  // namespace

CommandInfo GraphCompatCommand() {
  return {"graph compat",
          "List ops, types and attributes that a runtime does not support.",
          "Each line names the transform that removes the problem, if there "
          "is one. Exits with 1 if anything is missing. For TensorFlow, the "
          "command knows what came after 1.4 and which dtypes the ops' "
          "signatures allow, but not which kernels a build contains. For ONNX "
          "Runtime and TensorFlow Lite it finds out whether optctl graph "
          "convert can write the file.\n"
          "  optctl graph compat --in_graph=m.pb --target=tensorflow-1.4",
          [] { return std::unique_ptr<Command>(new GraphCompat); }};
}

}  // namespace optfarm::client_cli
