// optctl transforms: what the catalog says about each transform.

#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "engine/transforms/machinery/catalog.h"

namespace optfarm::client_cli {
namespace {

Table MakeTransformsTable() {
  Table table({{"name", "TRANSFORM"},
               {.name = "summary", .title = "WHAT IT DOES", .folds = true}});
  for (const transforms::TransformDef& def : transforms::AllTransforms()) {
    table.AddRow({Cell::Text(def.name), Cell::Text(def.summary)});
  }
  return table;
}

Table MakeParametersTable(const transforms::TransformDef& def) {
  Table table({{"name", "PARAMETER"},
               {"type", "TYPE"},
               {"default", "DEFAULT"},
               {"required", "REQUIRED"},
               {"repeated", "REPEATED"},
               {.name = "help", .title = "MEANING", .folds = true}});
  for (const transforms::ParameterDef& parameter : def.parameters) {
    table.AddRow({Cell::Text(parameter.name),
                  Cell::Text(transforms::ParameterTypeName(parameter.type)),
                  Cell::Text(parameter.default_value),
                  Cell(parameter.required, parameter.required ? "yes" : "no"),
                  Cell(parameter.repeated, parameter.repeated ? "yes" : "no"),
                  Cell::Text(parameter.help)});
  }
  return table;
}

class Transforms final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("NAME", "Show this transform's parameters.", &name_,
                    /*required=*/false);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (name_.empty()) {
      *context.out << MakeTransformsTable().ToFormat(context.format);
      return ExitCode::kOk;
    }
    const auto def = transforms::FindTransform(name_);
    if (!def.ok()) return WithExitCode(def.status(), ExitCode::kUsage);
    if (context.format == OutputFormat::kTable) {
      *context.out << (*def)->name << ": " << (*def)->summary << "\n\n";
    }
    *context.out << MakeParametersTable(**def).ToFormat(context.format);
    return ExitCode::kOk;
  }

 private:
  std::string name_;
};

}  // namespace

CommandInfo TransformsCommand() {
  return {"transforms", "List the transforms, or show one's parameters.", "",
          [] { return std::unique_ptr<Command>(new Transforms); }};
}

}  // namespace optfarm::client_cli
