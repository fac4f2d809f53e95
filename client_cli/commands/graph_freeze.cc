// optctl graph freeze: makes constants of a graph's variables, as TensorFlow's
// freeze_graph does.

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "engine/formats/tensorflow/freeze.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/inspect/constant_evaluator.h"

namespace optfarm::client_cli {
namespace {

std::vector<std::string> Names(const std::string& list) {
  std::vector<std::string> names;
  for (const absl::string_view name :
       absl::StrSplit(list, ',', absl::SkipWhitespace())) {
    names.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return names;
}

class GraphFreeze final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("input_graph", "FILE", "The graph, binary or text.",
                &input_graph_);
    flags->Path("input_meta_graph", "FILE",
                "Instead of --input_graph: a checkpoint's .meta file.",
                &input_meta_graph_);
    flags->Path("input_saved_model_dir", "DIR",
                "Instead of graph and checkpoint: a SavedModel.",
                &input_saved_model_dir_);
    flags->Text("saved_model_tags", "A,B",
                "With --input_saved_model_dir: the graph with these tags. "
                "Default: serve.",
                &saved_model_tags_);
    flags->Path("input_checkpoint", "PREFIX",
                "The checkpoint: a V2 prefix, a V1 file, or several V1 files "
                "separated by commas.",
                &input_checkpoint_);
    flags->Path("input_saver", "FILE",
                "A SaverDef, which defines the variables' names in the "
                "checkpoint. Default: the variables' own names.",
                &input_saver_);
    flags->Path("output_graph", "FILE", "The graph to write.", &output_graph_);
    flags->Required();
    flags->Text("output_node_names", "A,B",
                "Nodes to keep, with all that they need.", &output_node_names_);
    flags->Text("initializer_nodes", "A,B",
                "Nodes to run after restoring, for variables that the "
                "checkpoint does not have.",
                &initializer_nodes_);
    flags->Text("variable_names_whitelist", "A,B",
                "Only these variables become constants.", &whitelist_);
    flags->Text("variable_names_blacklist", "A,B",
                "These variables stay variables.", &blacklist_);
    flags->Switch("clear_devices",
                  "Remove the device from all nodes. Default: true.",
                  &clear_devices_);
    flags->Text("stored_names", "VARIABLE=TENSOR,...",
                "Variables with another name in the checkpoint, for instance "
                "w=w/ExponentialMovingAverage.",
                &stored_names_);
    flags->Switch("drop_updates",
                  "Freeze a training graph: readers of an updated variable "
                  "read the stored value.",
                  &drop_updates_);
    DeclareIgnoredFlags(flags);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckFlags());
    OPTFARM_ASSIGN_OR_RETURN(formats::FreezeSource source, Open());
    formats::FreezeOptions options;
    options.outputs = Names(output_node_names_);
    options.initializers = Names(initializer_nodes_);
    OPTFARM_ASSIGN_OR_RETURN(options.stored_names, ParseStoredNames());
    options.only_variables = Names(whitelist_);
    options.not_variables = Names(blacklist_);
    options.clear_devices = clear_devices_;
    options.drop_updates = drop_updates_;
    options.evaluate = inspect::EvaluateConstant;
    absl::StatusOr<formats::FrozenGraph> frozen =
        formats::Freeze(std::move(source), options);
    if (!frozen.ok()) return Annotate(frozen.status(), "freezing");
    OPTFARM_RETURN_IF_ERROR(
        formats::SaveGraphDef(frozen->graph, output_graph_));
    for (const std::string& remark : frozen->remarks) {
      *context.err << PrintableLine(remark) << "\n";
    }
    Print(*frozen, context);
    return ExitCode::kOk;
  }

 private:
  // The three lines that the original ends with, or a table for machines.
  void Print(const formats::FrozenGraph& frozen,
             const CommandContext& context) const {
    if (context.format != OutputFormat::kTable) {
      Table table(
          {{"variables", "VARIABLES"}, {"nodes", "NODES"}, {"file", "FILE"}});
      table.AddRow({Cell::Integer(frozen.converted_variables),
                    Cell::Integer(frozen.graph.node_size()),
                    Cell::Text(output_graph_)});
      *context.out << table.ToFormat(context.format);
      return;
    }
    *context.out << "Froze " << frozen.converted_variables << " variables.\n"
                 << "Converted " << frozen.converted_variables
                 << " variables to const ops.\n"
                 << frozen.graph.node_size() << " ops in the final graph.\n";
  }

  // What the original has and nobody needs here.
  void DeclareIgnoredFlags(FlagSet* flags) {
    flags->Switch("input_binary",
                  "Ignored: the format is detected from the file.",
                  &input_binary_);
    flags->Text("restore_op_name", "NAME", "Ignored, as in the original.",
                &restore_op_name_);
    flags->Text("filename_tensor_name", "NAME", "Ignored, as in the original.",
                &filename_tensor_name_);
    flags->Integer("checkpoint_version",
                   "Ignored: the version is detected from the files.",
                   &checkpoint_version_, 1, 2);
  }

  absl::Status CheckFlags() const {
    std::vector<std::string> sources;
    if (!input_graph_.empty()) sources.push_back("--input_graph");
    if (!input_meta_graph_.empty()) sources.push_back("--input_meta_graph");
    if (!input_saved_model_dir_.empty()) {
      sources.push_back("--input_saved_model_dir");
    }
    if (sources.empty()) {
      return UsageError(
          "what to freeze? Give --input_graph or --input_meta_graph with "
          "--input_checkpoint, or --input_saved_model_dir");
    }
    if (sources.size() > 1) {
      return UsageError(absl::StrCat(absl::StrJoin(sources, " and "),
                                     " exclude one another; give one"));
    }
    if (!input_saved_model_dir_.empty() && !input_checkpoint_.empty()) {
      return UsageError(
          "--input_saved_model_dir has its own variables; leave "
          "--input_checkpoint out");
    }
    if (input_saved_model_dir_.empty() && input_checkpoint_.empty()) {
      return UsageError(absl::StrCat(
          sources[0],
          " has no values of variables; give --input_checkpoint too"));
    }
    if (!input_saver_.empty() && input_graph_.empty()) {
      return UsageError(absl::StrCat("--input_saver: ", sources[0],
                                     " has a saver of its own; leave it out"));
    }
    if (Names(output_node_names_).empty()) {
      return UsageError(
          "--output_node_names is needed: the nodes whose values the frozen "
          "graph shall give (optctl graph summarize lists candidates)");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::pair<std::string, std::string>>>
  ParseStoredNames() const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const std::string& pair : Names(stored_names_)) {
      const size_t equals = pair.find('=');
      if (equals == std::string::npos) {
        return UsageError(absl::StrCat("--stored_names: '", pair,
                                       "' is not of the form VARIABLE=TENSOR"));
      }
      names.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
    return names;
  }

  absl::StatusOr<formats::FreezeSource> Open() const {
    if (!input_saved_model_dir_.empty()) {
      return formats::OpenSavedModelToFreeze(input_saved_model_dir_,
                                             Names(saved_model_tags_));
    }
    if (!input_meta_graph_.empty()) {
      return formats::OpenMetaGraphToFreeze(input_meta_graph_,
                                            input_checkpoint_);
    }
    return formats::OpenGraphToFreeze(input_graph_, input_checkpoint_,
                                      input_saver_);
  }

  std::string input_graph_, input_meta_graph_, input_saved_model_dir_;
  std::string saved_model_tags_ = "serve";
  std::string input_checkpoint_, input_saver_, output_graph_;
  std::string output_node_names_, initializer_nodes_, whitelist_, blacklist_;
  std::string stored_names_;
  std::string restore_op_name_, filename_tensor_name_;
  bool clear_devices_ = true;
  bool drop_updates_ = false;
  bool input_binary_ = false;
  int64_t checkpoint_version_ = 2;
};

}  // namespace

OriginalTool FreezeGraphTool() {
  return {.name = "freeze_graph",
          .command = "graph freeze",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonMainExitCodes,
          .create = GraphFreezeCommand().create};
}

CommandInfo GraphFreezeCommand() {
  return {
      "graph freeze", "Turn a graph's variables into constants.",
      "Variables get their values from a checkpoint (V1 or V2) or a "
      "SavedModel. Nodes that the outputs do not need are removed. Flags and "
      "output are those of TensorFlow's freeze_graph.\n"
      "  optctl graph freeze --input_graph=graph.pb \\\n"
      "      --input_checkpoint=model.ckpt-1000 \\\n"
      "      --output_node_names=softmax --output_graph=frozen.pb\n"
      "  optctl graph freeze --input_saved_model_dir=export/1 \\\n"
      "      --output_node_names=softmax --output_graph=frozen.pb",
      [] { return std::unique_ptr<Command>(new GraphFreeze); }};
}

}  // namespace optfarm::client_cli
