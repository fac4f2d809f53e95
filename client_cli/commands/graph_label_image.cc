// optctl graph label-image: what a classifier says about a picture, as
// TensorFlow's label_image.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/local/label_image.h"
#include "engine/formats/tensorflow/loaded_graph.h"

namespace optfarm::client_cli {
namespace {

// What --self_test expects first: the index of "military uniform".
constexpr int64_t kSelfTestIndex = 653;

class GraphLabelImage final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("image", "FILE", "The picture, JPEG or PNG.", &image_);
    flags->Path("graph", "FILE", "The graph, binary or text.", &graph_);
    flags->Path("labels", "FILE", "The labels, one per line.", &labels_);
    flags->Integer("input_width",
                   "Size of the model's input in pixels. Default: 299.",
                   &width_, 1, 16384);
    flags->Integer("input_height",
                   "Size of the model's input in pixels. Default: 299.",
                   &height_, 1, 16384);
    flags->Number("input_mean",
                  "Subtracted from a pixel of 0..255. Default: 0.", &mean_);
    flags->Number("input_std", "Divides the result. Default: 255.", &std_);
    flags->Text("input_layer", "NAME",
                "Input tensor for the picture. Default: input.", &input_layer_);
    flags->Text("output_layer", "NAME",
                "Output tensor with the scores. Default: "
                "InceptionV3/Predictions/Reshape_1.",
                &output_layer_);
    flags->Switch("self_test", "Fail unless label 653 is the best.",
                  &self_test_);
    flags->Path("root_dir", "DIR", "Base folder of relative file names.",
                &root_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (std_ == 0) return UsageError("--input_std: 0 cannot divide");
    OPTFARM_ASSIGN_OR_RETURN(const LabelImageRequest request, MakeRequest());
    OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file,
                             formats::LoadGraph(JoinPath(root_, graph_)));
    absl::StatusOr<graph::Graph> graph =
        graph::Graph::FromDef(std::move(file.def));
    if (!graph.ok()) {
      return Annotate(graph.status(), absl::StrCat("'", graph_, "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        const LabelledImage image,
        LabelImage(runtime::LoadedModel::Create(*std::move(graph)),
                   std::move(file.package), request));
    Print(image.best, context);
    if (image.labels != image.scores) {
      *context.err << "note: '" << labels_ << "' has " << image.labels
                   << " labels, but '" << output_layer_ << "' gives "
                   << image.scores
                   << " scores; the names fit only if lines and scores are "
                      "counted from the same class\n";
    }
    const int64_t best = image.best[0].index;
    if (!self_test_ || best == kSelfTestIndex) return ExitCode::kOk;
    *context.err << "--self_test: the best index is " << best << ", expected "
                 << kSelfTestIndex << "\n";
    return ExitCode::kJobFailed;
  }

 private:
  absl::StatusOr<LabelImageRequest> MakeRequest() const {
    LabelImageRequest request;
    request.image = JoinPath(root_, image_);
    request.labels = JoinPath(root_, labels_);
    request.input_width = static_cast<int>(width_);
    request.input_height = static_cast<int>(height_);
    request.input_mean = static_cast<float>(*mean_);
    request.input_std = static_cast<float>(*std_);
    OPTFARM_ASSIGN_OR_RETURN(request.input_layer,
                             graph::ParseTensorName(input_layer_));
    OPTFARM_ASSIGN_OR_RETURN(request.output_layer,
                             graph::ParseTensorName(output_layer_));
    return request;
  }

  static void Print(const std::vector<ImageLabel>& best,
                    const CommandContext& context) {
    Table table({{"label", "LABEL"}, {"index", "INDEX"}, {"score", "SCORE"}});
    for (const ImageLabel& label : best) {
      if (context.format == OutputFormat::kTable) {
        *context.out << PrintableLine(absl::StrFormat("%s (%d): %g",
                                                      label.label, label.index,
                                                      label.score))
                     << "\n";
      }
      table.AddRow(
          {Cell::Text(label.label), Cell::Integer(label.index),
           Cell(static_cast<double>(label.score), absl::StrCat(label.score))});
    }
    if (context.format != OutputFormat::kTable) {
      *context.out << table.ToFormat(context.format);
    }
  }

  std::string image_ = "tensorflow/examples/label_image/data/grace_hopper.jpg";
  std::string graph_ =
      "tensorflow/examples/label_image/data/"
      "inception_v3_2016_08_28_frozen.pb";
  std::string labels_ =
      "tensorflow/examples/label_image/data/imagenet_slim_labels.txt";
  int64_t width_ = 299;
  int64_t height_ = 299;
  std::optional<double> mean_ = 0;
  std::optional<double> std_ = 255;
  std::string input_layer_ = "input";
  std::string output_layer_ = "InceptionV3/Predictions/Reshape_1";
  bool self_test_ = false;
  std::string root_;
};

}  // namespace

CommandInfo GraphLabelImageCommand() {
  return {"graph label-image", "Classify a picture.",
          "The defaults are those of TensorFlow's example: its Inception v3, "
          "picture and labels in tensorflow/examples/label_image/data.\n"
          "  optctl graph label-image --graph=m.pb --labels=labels.txt \\\n"
          "      --image=cat.jpg --input_width=224 --input_height=224 \\\n"
          "      --input_layer=image --output_layer=softmax",
          [] { return std::unique_ptr<Command>(new GraphLabelImage); }};
}

OriginalTool LabelImageTool() {
  return {.name = "label_image",
          .command = "graph label-image",
          .exit_codes = {255, 255, 255, 2},
          .create = GraphLabelImageCommand().create};
}

}  // namespace optfarm::client_cli
