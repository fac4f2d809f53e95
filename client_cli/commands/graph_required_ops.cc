// optctl graph required-ops: the kernels that graphs need, as TensorFlow's
// print_selective_registration_header tells them and as our own build takes
// them.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/local/kernel_lists.h"
#include "client_cli/tables/json_text.h"
#include "engine/formats/models/load_model.h"
#include "engine/formats/tensorflow/graph_file.h"

namespace optfarm::client_cli {
namespace {

class GraphRequiredOps final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Text("graphs", "FILE,FILE", "The graphs, binary or text.", &graphs_);
    flags->Required();
    flags->Choice("proto_fileformat",
                  "Ignored: the format is detected from the file.",
                  {"rawproto", "textproto"}, &file_format_);
    flags->Text("default_ops", "OP:CLASS,...",
                "Additional kernels in the header; 'all': the header selects "
                "everything. Default: NoOp:NoOp,_Recv:RecvOp,_Send:SendOp.",
                &default_ops_);
    flags->Switch("list",
                  "Print ops with their dtypes instead, for a build of the "
                  "runtime with -DOPTFARM_KERNELS_FILE=FILE.",
                  &list_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    OPTFARM_RETURN_IF_ERROR(CheckNotCsv(context.format));
    inspect::RequiredKernels kernels;
    for (absl::string_view file :
         absl::StrSplit(graphs_, ',', absl::SkipEmpty())) {
      OPTFARM_ASSIGN_OR_RETURN(
          const tensorflow::GraphDef graph,
          formats::LoadModelDef(ExpandHome(std::string(file))));
      inspect::AddRequiredKernels(graph, &kernels);
    }
    const bool everything = default_ops_ == "all";
    if (context.format == OutputFormat::kJson) {
      *context.out << Json(kernels);
    } else if (list_) {
      Warn(kernels.not_in_runtime, "no kernel in Optfarm's runtime", context);
      *context.out << PrintableText(KernelsFile(kernels));
    } else {
      if (!everything) {
        OPTFARM_RETURN_IF_ERROR(AddDefaultKernels(default_ops_, &kernels));
      }
      Warn(kernels.without_class, "no kernel found", context);
      *context.out << PrintableText(
          RegistrationHeader(kernels, kToolName, everything));
    }
    return ExitCode::kOk;
  }

 private:
  static constexpr char kToolName[] = "print_selective_registration_header";

  static void Warn(const std::set<std::string>& ops, absl::string_view what,
                   const CommandContext& context) {
    for (const std::string& op : ops) {
      *context.err << PrintableLine(
                          absl::StrCat("Warning: ", what, " for op ", op))
                   << "\n";
    }
  }

  static std::string Json(const inspect::RequiredKernels& kernels) {
    std::map<std::string, nlohmann::ordered_json> ops;
    for (const auto& [op, dtype] : kernels.dtypes) {
      nlohmann::ordered_json& json = ops[op];
      if (json.is_null()) {
        json["op"] = op;
        json["dtypes"] = nlohmann::ordered_json::array();
        json["tensorflow_kernels"] = nlohmann::ordered_json::array();
        json["in_runtime"] = !kernels.not_in_runtime.contains(op);
      }
      if (!dtype.empty()) json["dtypes"].push_back(dtype);
    }
    for (const auto& [op, kernel] : kernels.classes) {
      if (!kernel.empty()) ops[op]["tensorflow_kernels"].push_back(kernel);
    }
    auto list = nlohmann::ordered_json::array();
    for (auto& [op, json] : ops) list.push_back(std::move(json));
    return JsonText(list);
  }

  std::string graphs_;
  std::string file_format_ = "rawproto";
  std::string default_ops_ = "NoOp:NoOp,_Recv:RecvOp,_Send:SendOp";
  bool list_ = false;
};

}  // namespace

CommandInfo GraphRequiredOpsCommand() {
  return {"graph required-ops",
          "List the ops and kernels that graphs need, for small builds.",
          "Prints TensorFlow's header for selective registration or, with "
          "--list, the input for a build of Optfarm's runtime with only these "
          "kernels.\n"
          "  optctl graph required-ops --graphs=m.pb --list > kernels.txt\n"
          "  cmake --preset release -DOPTFARM_KERNELS_FILE=kernels.txt",
          [] { return std::unique_ptr<Command>(new GraphRequiredOps); }};
}

OriginalTool PrintSelectiveRegistrationHeaderTool() {
  return {.name = "print_selective_registration_header",
          .command = "graph required-ops",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonExitCodes,
          .create = GraphRequiredOpsCommand().create};
}

}  // namespace optfarm::client_cli
