// optctl recipes: the recipes that come with Optfarm.

#include "engine/optimize/recipes/recipes.h"

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/proto_json.h"

namespace optfarm::client_cli {
namespace {

class Recipes final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "Print this recipe, or a YAML file's, in full.",
                    &name_, /*required=*/false);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (!name_.empty()) return PrintOne(context);
    std::vector<v1::Recipe> recipes;
    for (const std::string& name : optimize::BuiltInRecipeNames()) {
      OPTFARM_ASSIGN_OR_RETURN(recipes.emplace_back(),
                               optimize::BuiltInRecipe(name));
    }
    if (context.format == OutputFormat::kJson) {
      *context.out << "["
                   << absl::StrJoin(recipes, ",\n",
                                    [](std::string* out, const auto& recipe) {
                                      out->append(ProtoToJsonLine(recipe));
                                    })
                   << "]\n";
      return ExitCode::kOk;
    }
    Table table(
        {{"name", "RECIPE"},
         {"needs_calibration", "CALIBRATION"},
         {.name = "description", .title = "WHAT IT DOES", .folds = true}});
    for (const v1::Recipe& recipe : recipes) {
      const bool needed = recipe.calibration().required();
      table.AddRow({Cell::Text(recipe.name()),
                    Cell(needed, needed ? "required" : "optional"),
                    Cell::Text(recipe.description())});
    }
    *context.out << table.ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<ExitCode> PrintOne(const CommandContext& context) {
    const absl::StatusOr<v1::Recipe> recipe =
        optimize::LoadRecipe(ExpandHome(name_));
    if (!recipe.ok()) return WithExitCode(recipe.status(), ExitCode::kUsage);
    if (context.format == OutputFormat::kCsv) {
      return UsageError(
          "a single recipe has no CSV format; it is printed as YAML, or with "
          "-o json as JSON");
    }
    *context.out << (context.format == OutputFormat::kJson
                         ? ProtoToJson(*recipe)
                         : optimize::PrintRecipe(*recipe));
    return ExitCode::kOk;
  }

  std::string name_;
};

}  // namespace

CommandInfo RecipesCommand() {
  return {"recipes", "List the built-in recipes, or print one as YAML.",
          "Use a printed recipe as the start of your own:\n"
          "  optctl recipes int8 > mine.yaml\n"
          "  optctl submit model.pb --recipe=mine.yaml --calibration=images/",
          [] { return std::unique_ptr<Command>(new Recipes); }};
}

}  // namespace optfarm::client_cli
