// optctl graph label-image: what a classifier says about a picture, as
// TensorFlow's label_image.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/commands/commands.h"
#include "client_cli/local/label_image.h"
#include "client_cli/local/laid_out_model.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/model_notes.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::client_cli {
namespace {

// What --self_test expects first: the index of "military uniform".
constexpr int64_t kSelfTestIndex = 653;

// Of TensorFlow's example.
constexpr char kLabels[] =
    "tensorflow/examples/label_image/data/imagenet_slim_labels.txt";
constexpr char kInputLayer[] = "input";
constexpr char kOutputLayer[] = "InceptionV3/Predictions/Reshape_1";
constexpr int64_t kMostPixels = 16384;

class GraphLabelImage final : public Command {
 public:
  void DeclareFlags(FlagSet* flags) override {
    flags->Path("image", "FILE", "The picture, JPEG or PNG.", &image_);
    flags->Path("graph", "FILE",
                "The model: a graph, binary or text, an ONNX or a TensorFlow "
                "Lite file.",
                &graph_);
    flags->Path("labels", "FILE",
                "The labels, one per line. Default: the names in the model's "
                "file, where it has some.",
                &labels_);
    flags->Integer("input_width",
                   "Size of the model's input in pixels. Default: what the "
                   "model says, else 299.",
                   &width_, 1, kMostPixels);
    flags->Integer("input_height",
                   "Size of the model's input in pixels. Default: what the "
                   "model says, else 299.",
                   &height_, 1, kMostPixels);
    flags->Number("input_mean",
                  "Subtracted from a pixel of 0..255. Default: what the "
                  "model's file says, else 0.",
                  &mean_);
    flags->Number("input_std",
                  "Divides the result. Default: what the model's file says, "
                  "else 255.",
                  &std_);
    flags->Text("input_layer", "NAME",
                "Input tensor for the picture. Default: the model's first "
                "input where the file declares inputs, else input.",
                &input_layer_);
    flags->Text("output_layer", "NAME",
                "Output tensor with the scores. Default: the model's first "
                "output where the file declares outputs, else "
                "InceptionV3/Predictions/Reshape_1.",
                &output_layer_);
    flags->Switch("self_test", "Fail unless label 653 is the best.",
                  &self_test_);
    flags->Path("root_dir", "DIR", "Base folder of relative file names.",
                &root_);
  }

  absl::StatusOr<ExitCode> Run(const CommandContext& context) override {
    if (std_ == 0) return UsageError("--input_std: 0 cannot divide");
    std::vector<std::string> kept;
    if (!output_layer_.empty()) kept.push_back(output_layer_);
    OPTFARM_ASSIGN_OR_RETURN(formats::LoadedGraph file,
                             LoadLaidOut(JoinPath(root_, graph_), kept));
    absl::StatusOr<graph::Graph> graph =
        graph::Graph::FromDef(std::move(file.def));
    if (!graph.ok()) {
      return Annotate(graph.status(), absl::StrCat("'", graph_, "'"));
    }
    OPTFARM_ASSIGN_OR_RETURN(const LabelImageRequest request,
                             MakeRequest(*graph));
    OPTFARM_ASSIGN_OR_RETURN(
        const LabelledImage image,
        LabelImage(runtime::LoadedModel::Create(*std::move(graph)),
                   std::move(file.package), request));
    Print(image.best, context);
    if (image.labels != image.scores) {
      *context.err << "note: '"
                   << (request.labels.empty() ? graph_ : request.labels)
                   << "' has " << image.labels << " labels, but '"
                   << graph::ToString(request.output_layer) << "' gives "
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
  absl::StatusOr<LabelImageRequest> MakeRequest(
      const graph::Graph& graph) const {
    LabelImageRequest request;
    request.image = JoinPath(root_, image_);
    const graph::ModelNotes notes = graph::ReadModelNotes(graph);
    const graph::ModelInterface model = graph::ReadModelInterface(graph);
    if (labels_.empty()) request.names = notes.labels;
    if (labels_.empty() && notes.labels.empty() && !model.format.empty()) {
      return UsageError(absl::StrCat("--labels is missing: '", graph_,
                                     "' does not say what its classes are "
                                     "called"));
    }
    if (request.names.empty()) {
      request.labels = JoinPath(root_, labels_.empty() ? kLabels : labels_);
    }
    OPTFARM_ASSIGN_OR_RETURN(
        request.input_layer,
        TensorOf(graph, input_layer_, model.inputs, kInputLayer));
    OPTFARM_ASSIGN_OR_RETURN(
        request.output_layer,
        TensorOf(graph, output_layer_, model.outputs, kOutputLayer));
    OPTFARM_RETURN_IF_ERROR(ReadInput(graph, &request));
    if (width_ > 0) request.input_width = static_cast<int>(width_);
    if (height_ > 0) request.input_height = static_cast<int>(height_);
    // A scale is one: half of it from the file would be neither.
    const size_t numbers = notes.mean.size();
    if (!mean_ && !std_ && (numbers == 1 || numbers == 3)) {
      request.input_mean = notes.mean;
      request.input_std = notes.std;
    } else {
      request.input_mean = {static_cast<float>(mean_.value_or(0))};
      request.input_std = {static_cast<float>(std_.value_or(255))};
    }
    return request;
  }

  // The tensor that is asked for; else the first that the file declares.
  static absl::StatusOr<graph::TensorName> TensorOf(
      const graph::Graph& graph, const std::string& asked,
      const std::vector<graph::ModelTensor>& declared, const char* otherwise) {
    if (asked.empty() && declared.empty()) {
      return graph::ParseTensorName(otherwise);
    }
    if (!asked.empty() && declared.empty()) {
      return graph::ParseTensorName(asked);
    }
    graph::Endpoint tensor = declared[0].tensor;
    if (!asked.empty()) {
      OPTFARM_ASSIGN_OR_RETURN(tensor, graph::ResolveTensor(graph, asked));
    }
    return graph::TensorName{graph.node(tensor.node).name(), tensor.port};
  }

  // Type, order of the axes and size of the input, as far as the graph says.
  static absl::Status ReadInput(const graph::Graph& graph,
                                LabelImageRequest* request) {
    const graph::NodeId id = graph.Find(request->input_layer.node);
    // The session says more about a name that is not there.
    if (id == graph::kNoNode) return absl::OkStatus();
    const graph::Node& node = graph.node(id);
    if (!graph::IsPlaceholder(node.op())) return absl::OkStatus();
    const auto* type = node.FindAttr("dtype");
    if (type != nullptr) request->input_type = type->type();
    if (request->input_type != tensorflow::DT_FLOAT &&
        request->input_type != tensorflow::DT_UINT8 &&
        request->input_type != tensorflow::DT_INT8) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", request->input_layer.node, "' takes ",
                       graph::DataTypeName(request->input_type),
                       "; a picture can be fed as floats and as bytes"));
    }
    const auto* declared = node.FindAttr("shape");
    if (declared == nullptr) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(const graph::PartialShape shape,
                             graph::PartialShape::FromProto(declared->shape()));
    if (!shape.has_rank() || shape.rank() != 4) return absl::OkStatus();
    request->channels_first = shape.dim(1) == 3 && shape.dim(3) != 3;
    const int64_t height = shape.dim(request->channels_first ? 2 : 1);
    const int64_t width = shape.dim(request->channels_first ? 3 : 2);
    if (height > 0 && height <= kMostPixels && width > 0 &&
        width <= kMostPixels) {
      request->input_height = static_cast<int>(height);
      request->input_width = static_cast<int>(width);
    }
    return absl::OkStatus();
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
  // Empty, 0, absent: not given.
  std::string labels_;
  int64_t width_ = 0;
  int64_t height_ = 0;
  std::optional<double> mean_;
  std::optional<double> std_;
  std::string input_layer_;
  std::string output_layer_;
  bool self_test_ = false;
  std::string root_;
};

}  // namespace

CommandInfo GraphLabelImageCommand() {
  return {"graph label-image", "Classify a picture.",
          "The defaults are those of TensorFlow's example: its Inception v3, "
          "picture and labels in tensorflow/examples/label_image/data.\n"
          "Of an ONNX or TensorFlow Lite model the file says what it is fed "
          "and often what its classes are called:\n"
          "  optctl graph label-image --graph=m.tflite --image=cat.jpg\n"
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
