// optctl graph summarize: what a graph holds and how to run it.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/json_text.h"
#include "client_cli/tables/structure_text.h"
#include "client_cli/tables/summary_text.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/model_notes.h"
#include "engine/inspect/graph_bytes.h"
#include "engine/transforms/layout/lay_out_model.h"
#include "engine/transforms/nodes/quantized_layers.h"

namespace optfarm::client_cli {
namespace {

class GraphSummarize final : public Command {
 public:
  // `benchmark`: the command line that is suggested begins with this.
  explicit GraphSummarize(const char* benchmark) : benchmark_(benchmark) {}

  void DeclareFlags(FlagSet* flags) override {
    flags->Path("in_graph", "FILE", "The graph, binary or text.", &in_graph_);
    flags->Reads();
    flags->Required();
    flags->Switch("print_structure",
                  "Also list all nodes in the order of execution.",
                  &print_structure_);
    flags->Switch("print_bytes",
                  "Also list, by op, what takes space in the file: values, "
                  "names, inputs, ops and attributes.",
                  &print_bytes_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::GraphDef graph,
                             formats::LoadModelDef(in_graph_));
    const inspect::GraphSummary summary = inspect::SummarizeGraph(graph);
    const std::string line = BenchmarkLine(summary, in_graph_, benchmark_);
    const bool structure = print_structure_ && summary.invalid_inputs.empty();
    OPTFARM_ASSIGN_OR_RETURN(const std::optional<LayoutCounts> layout,
                             CountLayout(graph));
    if (context.format == OutputFormat::kTable) {
      PrintText(summary, line, context);
      *context.out << PrintableText(NotesText(graph::ReadModelNotes(graph)));
      if (layout) *context.out << layout->ToText() << "\n";
      if (layout && layout->quantized.weight_bits > 0) {
        *context.out << QuantizedText(layout->quantized) << "\n";
      }
      if (structure) {
        OPTFARM_ASSIGN_OR_RETURN(const auto nodes,
                                 inspect::ListGraphStructure(graph));
        for (const std::string& node : StructureLines(nodes)) {
          *context.out << PrintableLine(node) << "\n";
        }
      }
      if (print_bytes_) *context.out << "\n" << BytesTable(graph).ToText();
    } else {
      OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
      auto json = nlohmann::ordered_json::parse(SummaryJson(summary, line));
      const graph::ModelNotes notes = graph::ReadModelNotes(graph);
      if (!notes.labels.empty()) json["labels"] = notes.labels;
      if (!notes.mean.empty()) {
        json["input_mean"] = notes.mean;
        json["input_std"] = notes.std;
      }
      if (layout) {
        json["transposes"] = {{"in_file", layout->before},
                              {"laid_out", layout->after}};
        json["quantized"] = QuantizedJson(layout->quantized);
      }
      if (structure) {
        OPTFARM_ASSIGN_OR_RETURN(const auto nodes,
                                 inspect::ListGraphStructure(graph));
        json["structure"] = StructureLines(nodes);
      }
      if (print_bytes_) {
        json["bytes"] =
            nlohmann::ordered_json::parse(BytesTable(graph).ToJson());
      }
      *context.out << JsonText(json);
    }
    if (summary.invalid_inputs.empty()) return ExitCode::kOk;
    return absl::InvalidArgumentError(
        absl::StrCat("'", in_graph_, "' has ", summary.invalid_inputs.size(),
                     " inputs that name nodes it does not have"));
  }

 private:
  // Transposes of a graph as it is read, and as it runs.
  struct LayoutCounts {
    int before = 0;
    int after = 0;
    transforms::QuantizedLayers quantized;

    std::string ToText() const {
      return absl::StrCat(before,
                          " Transposes around nodes that want channels "
                          "last, of which ",
                          after, " remain when it runs");
    }
  };

  // Nothing for graphs that run as they are: TensorFlow's.
  static absl::StatusOr<std::optional<LayoutCounts>> CountLayout(
      const tensorflow::GraphDef& def) {
    absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(def);
    // What is wrong with it is said elsewhere.
    if (!graph.ok() || graph::ReadModelInterface(*graph).format.empty()) {
      return std::nullopt;
    }
    LayoutCounts counts;
    counts.before = transforms::CountTransposes(*graph);
    OPTFARM_RETURN_IF_ERROR(transforms::LayOutModel({}, &*graph));
    counts.after = transforms::CountTransposes(*graph);
    counts.quantized = transforms::CountQuantizedLayers(*graph);
    return counts;
  }

  static std::string QuantizedText(const transforms::QuantizedLayers& found) {
    if (found.quantized == 0) {
      return absl::StrCat(
          "Weights quantized already: ", Describe(found),
          "; recipe weights8 keeps them, int8 quantizes them anew");
    }
    return absl::StrCat("Quantized already: ", Describe(found),
                        found.are_most() ? "; recipes keep that" : "");
  }

  static nlohmann::ordered_json QuantizedJson(
      const transforms::QuantizedLayers& found) {
    return {{"layers", found.layers},
            {"quantized_layers", found.quantized},
            {"weights_only_layers", found.weights_only},
            {"weight_bits", found.weight_bits},
            {"per_channel", found.per_channel},
            {"kept", found.are_most()}};
  }

  static std::string NotesText(const graph::ModelNotes& notes) {
    constexpr size_t kNamed = 5;
    std::string text;
    if (!notes.mean.empty()) {
      absl::StrAppend(&text, "The file says that pictures are fed as (value - ",
                      absl::StrJoin(notes.mean, ","), ") / ",
                      absl::StrJoin(notes.std, ","), ".\n");
    }
    if (notes.labels.empty()) return text;
    const size_t named = std::min(kNamed, notes.labels.size());
    const absl::Span<const std::string> first(notes.labels.data(), named);
    return absl::StrCat(text, "The file names ", notes.labels.size(),
                        " classes: '", absl::StrJoin(first, "', '"), "'",
                        named < notes.labels.size() ? " and so on" : "", ".\n");
  }

  static void PrintText(const inspect::GraphSummary& summary,
                        const std::string& benchmark_line,
                        const CommandContext& context) {
    *context.out << PrintableText(SummaryText(summary, benchmark_line));
    for (const inspect::InvalidInput& invalid : summary.invalid_inputs) {
      *context.out << PrintableLine(InvalidInputText(invalid)) << "\n";
    }
  }

  static Table BytesTable(const tensorflow::GraphDef& graph) {
    constexpr auto kRight = Table::Align::kRight;
    Table table({{"op", "OP"},
                 {"nodes", "NODES", kRight},
                 {"bytes", "BYTES", kRight},
                 {"value_bytes", "VALUES", kRight},
                 {"name_bytes", "NAMES", kRight},
                 {"input_bytes", "INPUTS", kRight},
                 {"other_bytes", "OP AND ATTRIBUTES", kRight}});
    for (const inspect::OpBytes& bytes : inspect::CountGraphBytes(graph)) {
      table.AddRow({Cell::Text(bytes.op), Cell::Integer(bytes.nodes),
                    Cell::Integer(bytes.all), Cell::Integer(bytes.values),
                    Cell::Integer(bytes.names), Cell::Integer(bytes.inputs),
                    Cell::Integer(bytes.other())});
    }
    return table;
  }

  const std::string benchmark_;
  std::string in_graph_;
  bool print_structure_ = false;
  bool print_bytes_ = false;
};

}  // namespace

CommandInfo GraphSummarizeCommand() {
  return {"graph summarize",
          "Show a graph's inputs, outputs, ops and parameters.",
          "Prints the lines of TensorFlow's summarize_graph.", [] {
            return std::unique_ptr<Command>(
                new GraphSummarize("optctl graph benchmark"));
          }};
}

OriginalTool SummarizeGraphTool() {
  return {
      .name = "summarize_graph", .command = "graph summarize", .create = [] {
        return std::unique_ptr<Command>(new GraphSummarize("benchmark_model"));
      }};
}

}  // namespace optfarm::client_cli
