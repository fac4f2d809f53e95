// optctl graph convert: reads a model of one format and writes it in another,
// and compares the answers of both.

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/flags/tensor_spec_flag.h"
#include "engine/export/convert_file.h"
#include "engine/export/export_model.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::client_cli {
namespace {

absl::StatusOr<graph::IoRequest> ParseRequest(
    const std::vector<std::string>& inputs,
    const std::vector<std::string>& outputs) {
  graph::IoRequest request;
  OPTFARM_ASSIGN_OR_RETURN(const auto input_specs, ParseTensorSpecs(inputs));
  for (const v1::TensorSpec& spec : input_specs) {
    graph::InputRequest& input = request.inputs.emplace_back();
    input.name = spec.name();
    if (!spec.shape_known()) continue;
    input.shape = graph::PartialShape(
        std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  }
  OPTFARM_ASSIGN_OR_RETURN(const auto output_specs, ParseTensorSpecs(outputs));
  for (const v1::TensorSpec& spec : output_specs) {
    request.outputs.push_back(spec.name());
  }
  return request;
}

class GraphConvert final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path(
        "in_graph", "FILE",
        "The model to read: a TensorFlow graph, binary or text, an ONNX "
        "or a TensorFlow Lite model.",
        &in_graph_);
    flags->Reads();
    flags->Required();
    flags->Path("out_graph", "FILE",
                "The model to write; the end of the name is its format: .pb, "
                ".pbtxt, .onnx or .tflite.",
                &out_graph_);
    flags->Required();
    flags->Integer("opset", "ONNX's version of the ops. Default: 17.", &opset_,
                   formats::kOldestWrittenOpset, formats::kNewestWrittenOpset);
    flags->Switch("half_weights", "Store large float constants in 16 bits.",
                  &half_weights_);
    flags->Switch("int8_weights",
                  "TensorFlow Lite: store weights of float layers as int8; "
                  "runtimes quantize activations in each run.",
                  &int8_weights_);
    flags->Choice("io_type",
                  "TensorFlow Lite: the type of quantized inputs and outputs. "
                  "Default: the model's.",
                  {"model", "float", "int8", "uint8"}, &io_type_);
    flags->Choice("activations",
                  "What 8-bit activations of a recipe become: int8, uint8, "
                  "symmetric (int8 with zero point 0, for NPUs) or int16 (with "
                  "zero point 0). Default: int8.",
                  {"int8", "uint8", "symmetric", "int16"}, &activations_);
    flags->Switch("unsigned",
                  "ONNX: write int8 values and weights as uint8, with zero "
                  "points 128 higher; the numbers stay the same, and ONNX "
                  "Runtime on x86-64 computes more of them exactly.",
                  &unsigned_);
    flags->Switch("dynamic_batch",
                  "TensorFlow Lite: keep an open batch open; some runtimes "
                  "refuse such files.",
                  &dynamic_batch_);
    flags->Path("labels", "FILE",
                "TensorFlow Lite and ONNX: the classes' names, one on a line, "
                "to be kept with the model. Default: those that it has.",
                &labels_);
    flags->Reads();
    flags->Number(
        "input_mean",
        "TensorFlow Lite and ONNX: pictures are fed as (value - mean) "
        "/ std; kept with the model. Default: what it says itself.",
        &input_mean_);
    flags->Number("input_std", "See --input_mean.", &input_std_);
    flags->Texts("inputs", "A,B",
                 "The model's inputs, with shapes where it does not define "
                 "them: image:1,224,224,3. Default: inferred.",
                 &inputs_);
    flags->Texts("outputs", "A,B", "The model's outputs. Default: inferred.",
                 &outputs_);
    flags->Switch("verify",
                  "Read the file back and compare its answers on random "
                  "inputs. Default: true; --verify=no skips it.",
                  &verify_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    exporting::ConvertOptions options;
    OPTFARM_ASSIGN_OR_RETURN(options.written.format, OutputFormatOrUsage());
    options.written.opset = static_cast<int>(opset_);
    options.written.half_weights = half_weights_;
    options.written.int8_weights = int8_weights_;
    options.written.ends = Ends();
    options.written.activations = activations_;
    options.written.unsigned_values = unsigned_;
    options.written.dynamic_batch = dynamic_batch_;
    options.compare = verify_;
    OPTFARM_ASSIGN_OR_RETURN(options.written.metadata, Metadata());
    OPTFARM_ASSIGN_OR_RETURN(options.io, ParseRequest(inputs_, outputs_));
    OPTFARM_ASSIGN_OR_RETURN(
        const std::string line,
        exporting::ConvertFile(in_graph_, out_graph_, options));
    *context.out << PrintableText(absl::StrCat(out_graph_, ": ", line)) << "\n";
    return ExitCode::kOk;
  }

 private:
  absl::StatusOr<exporting::ModelFormat> OutputFormatOrUsage() const {
    absl::StatusOr<exporting::ModelFormat> format =
        exporting::FormatOfPath(out_graph_);
    if (!format.ok()) {
      return WithExitCode(Annotate(format.status(), "--out_graph"),
                          ExitCode::kUsage);
    }
    return format;
  }

  absl::StatusOr<formats::TfliteMetadata> Metadata() const {
    formats::TfliteMetadata metadata;
    if (input_mean_.has_value() || input_std_.has_value()) {
      metadata.mean = {static_cast<float>(input_mean_.value_or(0))};
      metadata.std = {static_cast<float>(input_std_.value_or(1))};
    }
    if (labels_.empty()) return metadata;
    OPTFARM_ASSIGN_OR_RETURN(const std::string text, ReadFile(labels_));
    metadata.labels = formats::ParseClassNames(text);
    if (metadata.labels.empty()) {
      return WithExitCode(
          absl::InvalidArgumentError(absl::StrCat(
              "--labels: '", labels_, "' does not have a name on each line")),
          ExitCode::kUsage);
    }
    return metadata;
  }

  formats::TfliteEnds Ends() const {
    if (io_type_ == "float") return formats::TfliteEnds::kFloat;
    if (io_type_ == "int8") return formats::TfliteEnds::kInt8;
    if (io_type_ == "uint8") return formats::TfliteEnds::kUint8;
    return formats::TfliteEnds::kAsTheyAre;
  }

  std::string in_graph_, out_graph_;
  std::string io_type_ = "model";
  std::string activations_ = "int8";
  std::string labels_;
  std::optional<double> input_mean_, input_std_;
  std::vector<std::string> inputs_, outputs_;
  int64_t opset_ = formats::kDefaultWrittenOpset;
  bool half_weights_ = false;
  bool unsigned_ = false;
  bool int8_weights_ = false;
  bool dynamic_batch_ = false;
  bool verify_ = true;
};

}  // namespace

CommandInfo GraphConvertCommand() {
  return {"graph convert", "Write a model in another format.",
          "The formats are TensorFlow graphs (.pb, .pbtxt), ONNX (.onnx) and\n"
          "TensorFlow Lite (.tflite).\n"
          "A model that a format cannot hold is refused with all reasons.\n"
          "  optctl graph convert --in_graph=m.pb --out_graph=m.onnx\n"
          "  optctl graph convert --in_graph=m.onnx --out_graph=m.tflite",
          [] { return std::unique_ptr<Command>(new GraphConvert); }};
}

}  // namespace optfarm::client_cli
