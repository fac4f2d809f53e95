// optctl graph checkpoint: what is in a checkpoint, as TensorFlow's
// inspect_checkpoint tells it.

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/tables/array_text.h"
#include "engine/formats/tensorflow/checkpoint.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::client_cli {
namespace {

using formats::Checkpoint;
using formats::SavedTensor;

std::string ShapeText(const SavedTensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ","), "]");
}

Table MakeTensorsTable(const Checkpoint& checkpoint) {
  Table table({{"tensor", "TENSOR"},
               {"dtype", "TYPE"},
               {"shape", "SHAPE"},
               {"parts", "PARTS", Table::Align::kRight}});
  for (const SavedTensor& tensor : checkpoint.tensors()) {
    table.AddRow({Cell::Text(tensor.name),
                  Cell::Text(tensorflow::DataType_Name(tensor.dtype)),
                  Cell::Text(ShapeText(tensor)),
                  Cell::Integer(static_cast<int64_t>(tensor.pieces.size()))});
  }
  return table;
}

class GraphCheckpoint final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Argument("CHECKPOINT",
                    "The checkpoint: a V2 prefix or a V1 file. The same as "
                    "--file_name.",
                    &argument_, /*required=*/false);
    flags->Path("file_name", "PREFIX", "The checkpoint.", &file_name_);
    flags->Text("tensor_name", "NAME", "Print this tensor's values.",
                &tensor_name_);
    flags->Switch("all_tensors", "Print the values of all tensors.",
                  &all_tensors_);
    flags->Switch("all_tensor_names", "Print the names of all tensors.",
                  &all_tensor_names_);
    flags->Texts("printoptions", "K=V,K=V",
                 "How values are printed: precision=8, threshold=1000, "
                 "edgeitems=3, linewidth=75, suppress=False.",
                 &print_options_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (file_name_.empty() == argument_.empty()) {
      return UsageError("which checkpoint? Give one, as --file_name or alone");
    }
    OPTFARM_RETURN_IF_ERROR(ParsePrintOptions());
    OPTFARM_ASSIGN_OR_RETURN(
        const std::unique_ptr<Checkpoint> checkpoint,
        Checkpoint::Open(file_name_.empty() ? ExpandHome(argument_)
                                            : file_name_));
    if (!tensor_name_.empty() && !all_tensors_ && !all_tensor_names_) {
      const SavedTensor* tensor = checkpoint->Find(tensor_name_);
      if (tensor == nullptr) return NoTensor(*checkpoint);
      OPTFARM_RETURN_IF_ERROR(Print(*checkpoint, *tensor, context));
      return ExitCode::kOk;
    }
    if (!all_tensors_ && !all_tensor_names_) {
      List(*checkpoint, context);
      return ExitCode::kOk;
    }
    for (const SavedTensor& tensor : checkpoint->tensors()) {
      OPTFARM_RETURN_IF_ERROR(Print(*checkpoint, tensor, context));
    }
    return ExitCode::kOk;
  }

 private:
  absl::Status ParsePrintOptions() {
    for (const std::string& list : print_options_) {
      for (const absl::string_view option :
           absl::StrSplit(list, ',', absl::SkipEmpty())) {
        const absl::Status status = SetArrayTextOption(option, &how_);
        if (!status.ok()) {
          return WithExitCode(Annotate(status, "--printoptions"),
                              ExitCode::kUsage);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status NoTensor(const Checkpoint& checkpoint) const {
    std::vector<std::string> names;
    for (const SavedTensor& tensor : checkpoint.tensors()) {
      names.push_back(tensor.name);
    }
    return absl::NotFoundError(
        absl::StrCat("checkpoint '", checkpoint.name(), "' has no tensor '",
                     tensor_name_, "'", NearestNamesHint(tensor_name_, names)));
  }

  // The original's lines, or a table for machines.
  static void List(const Checkpoint& checkpoint,
                   const CommandContext& context) {
    if (context.format != OutputFormat::kTable) {
      *context.out << MakeTensorsTable(checkpoint).ToFormat(context.format);
      return;
    }
    for (const SavedTensor& tensor : checkpoint.tensors()) {
      *context.out << PrintableLine(
                          absl::StrCat(tensor.name, " (",
                                       tensorflow::DataType_Name(tensor.dtype),
                                       ") ", ShapeText(tensor)))
                   << "\n";
    }
    *context.out << "\n";
  }

  absl::Status Print(const Checkpoint& checkpoint, const SavedTensor& tensor,
                     const CommandContext& context) const {
    *context.out << "tensor_name:  " << PrintableLine(tensor.name) << "\n";
    if (all_tensor_names_ && !all_tensors_) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto proto,
                             checkpoint.Read(tensor));
    OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor value,
                             runtime::Tensor::FromProto(proto));
    *context.out << PrintableText(ArrayText(value, how_)) << "\n";
    return absl::OkStatus();
  }

  std::string argument_, file_name_, tensor_name_;
  std::vector<std::string> print_options_;
  ArrayTextOptions how_;
  bool all_tensors_ = false;
  bool all_tensor_names_ = false;
};

}  // namespace

OriginalTool InspectCheckpointTool() {
  return {.name = "inspect_checkpoint",
          .command = "graph checkpoint",
          .language = OriginalLanguage::kPython,
          .exit_codes = kPythonExitCodes,
          .create = GraphCheckpointCommand().create};
}

CommandInfo GraphCheckpointCommand() {
  return {"graph checkpoint", "Show the tensors of a checkpoint.",
          "Without flags: lists each tensor with type and shape. Prints the "
          "lines of TensorFlow's inspect_checkpoint.\n"
          "  optctl graph checkpoint model.ckpt-1000\n"
          "  optctl graph checkpoint model.ckpt-1000 --tensor_name=conv1/bias",
          [] { return std::unique_ptr<Command>(new GraphCheckpoint); }};
}

}  // namespace optfarm::client_cli
