// optctl graph tensorboard: a graph where TensorBoard finds it, as TensorFlow's
// import_pb_to_tensorboard.

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/tensorflow/event_file.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

std::string HostName() {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return host[0] == '\0' ? "localhost" : host;
}

class GraphTensorboard final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("model_dir", "FILE", "The graph, binary or text.", &model_);
    flags->Required();
    flags->Path("log_dir", "DIR",
                "Folder for the event file; created if missing.", &log_dir_);
    flags->Required();
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef graph,
                             formats::LoadGraphDef(model_));
    const absl::Time now = context.clock->Now();
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string bytes,
        formats::GraphToEventFile(
            formats::ImportedGraph(std::move(graph), "import"), now));
    OPTFARM_RETURN_IF_ERROR(MakeFolders(log_dir_));
    const std::string path =
        JoinPath(log_dir_, formats::EventFileName(now, HostName()));
    OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
    const std::string command = absl::StrCat("tensorboard --logdir=", log_dir_);
    if (context.format == OutputFormat::kJson) {
      nlohmann::ordered_json json;
      json["file"] = path;
      json["command"] = command;
      *context.out << JsonText(json);
    } else {
      *context.out << PrintableLine(absl::StrCat("To look at it: ", command))
                   << "\n";
    }
    return ExitCode::kOk;
  }

 private:
  std::string model_, log_dir_;
};

}  // namespace

CommandInfo GraphTensorboardCommand() {
  return {"graph tensorboard", "Write a graph for TensorBoard.",
          "Node names get the prefix import/, as in a program that imported "
          "the graph.\n"
          "  optctl graph tensorboard --model_dir=m.pb --log_dir=logs",
          [] { return std::unique_ptr<Command>(new GraphTensorboard); }};
}

OriginalTool ImportPbToTensorboardTool() {
  return {.name = "import_pb_to_tensorboard",
          .command = "graph tensorboard",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonExitCodes,
          .create = GraphTensorboardCommand().create};
}

}  // namespace optfarm::client_cli
