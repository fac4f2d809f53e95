// optctl graph compare: whether two graphs are the same, as TensorFlow's
// compare_graphs.

#include <nlohmann/json.hpp>

#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/difference_text.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

// In JSON; as text, like the original, only the first is told.
constexpr size_t kMostDifferences = 1000;

class GraphCompare final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->PathArgument("FIRST", "A graph, binary or text.", &first_);
    flags->PathArgument("SECOND", "The graph to compare with.", &second_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::GraphDef first,
                             formats::LoadModelDef(first_));
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::GraphDef second,
                             formats::LoadModelDef(second_));
    const bool all = context.format == OutputFormat::kJson;
    const std::vector<inspect::NodeDifference> differences =
        inspect::FindGraphDifferences(first, second,
                                      all ? kMostDifferences : 1);
    if (all) {
      nlohmann::ordered_json json;
      json["equal"] = differences.empty();
      json["differences"] = nlohmann::ordered_json::array();
      for (const inspect::NodeDifference& difference : differences) {
        json["differences"].push_back(DifferenceText(difference));
      }
      *context.out << JsonText(json);
    } else if (differences.empty()) {
      *context.out << "Graphs are equal.\n";
    } else {
      *context.out << PrintableLine(DifferenceText(differences[0])) << "\n";
    }
    return differences.empty() ? ExitCode::kOk : ExitCode::kJobFailed;
  }

 private:
  std::string first_, second_;
};

}  // namespace

CommandInfo GraphCompareCommand() {
  return {"graph compare", "Compare two graphs.",
          "Compares nodes by name, in any order; ignores versions and "
          "attributes that begin with '_'. Prints the first difference, and "
          "exits with 1 if there is one; -o json lists all of them.\n"
          "  optctl graph compare before.pb after.pb",
          [] { return std::unique_ptr<Command>(new GraphCompare); }};
}

OriginalTool CompareGraphsTool() {
  return {.name = "compare_graphs",
          .command = "graph compare",
          .exit_codes = {255, 255, 255, 1},
          .create = GraphCompareCommand().create};
}

}  // namespace optfarm::client_cli
