#include "tests/bench/accuracy_cases.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/optimize/samples/labels.h"

namespace optfarm::bench {
namespace {

using optimize::ModelTensor;
using runtime::Shape;
using runtime::Tensor;

constexpr size_t kCalibration = 100;
constexpr uint64_t kSplitSeed = 20;
constexpr int64_t kBoards = 300;

ModelTensor Input(const std::string& node, tensorflow::DataType dtype,
                  std::vector<int64_t> shape, int port = 0) {
  ModelTensor input;
  input.name = {node, port};
  input.dtype = dtype;
  input.shape = std::move(shape);
  return input;
}

ModelTensor FloatInput(const std::string& node, std::vector<int64_t> shape) {
  return Input(node, tensorflow::DT_FLOAT, std::move(shape));
}

// (value - mean) / std.
v1::Preprocessing Scaled(double mean, double std) {
  v1::Preprocessing preprocessing;
  preprocessing.add_mean(mean);
  preprocessing.add_std(std);
  return preprocessing;
}

AccuracyCase PictureCase(const std::string& name, const std::string& model,
                         const std::string& input, std::vector<int64_t> shape,
                         const std::string& output, const std::string& folder,
                         v1::Preprocessing preprocessing) {
  AccuracyCase c;
  c.name = name;
  c.model = absl::StrCat("models/", model);
  c.inputs = {FloatInput(input, std::move(shape))};
  c.outputs = {output};
  c.path = absl::StrCat("images/", folder);
  c.preprocessing = std::move(preprocessing);
  return c;
}

AccuracyCase SoundCase(const std::string& name, const std::string& model) {
  AccuracyCase c;
  c.name = name;
  c.model = absl::StrCat("models/", model);
  c.inputs = {FloatInput("decoded_sample_data", {16000, 1}),
              Input("decoded_sample_data", tensorflow::DT_INT32, {}, 1)};
  c.outputs = {"labels_softmax"};
  c.path = "speech_commands";
  c.labels = name == "conv_actions" ? "misc/conv_actions_labels.txt"
                                    : "misc/ml_kws_labels.txt";
  c.least_agreement = 0.96;
  return c;
}

AccuracyCase DigitCase(const std::string& name, const std::string& model,
                       const std::string& input, const std::string& output) {
  AccuracyCase c;
  c.name = name;
  c.model = absl::StrCat("models/", model);
  c.inputs = {FloatInput(input, {1, 784})};
  c.outputs = {output};
  c.data = DataKind::kArray;
  c.path = "images/mnist/t10k_0_5000-images-idx3-ubyte";
  c.labels = "images/mnist/t10k_0_5000-labels-idx1-ubyte";
  c.preprocessing = Scaled(0, 255);
  c.most_top1_loss = 0.2;
  return c;
}

void AddClassifiers(std::vector<AccuracyCase>* cases) {
  AccuracyCase c = PictureCase(
      "mobilenet_v1_0.25_128", "mobilenet_v1_0.25_128/frozen_graph.pb", "input",
      {1, 128, 128, 3}, "MobilenetV1/Predictions/Reshape_1",
      "imagenet_300_crop_128_u8.npy", Scaled(127.5, 127.5));
  c.data = DataKind::kArray;
  c.labels = "images/imagenet_300_index1001.npy";
  c.most_top1_loss = 1;
  c.least_agreement = 0.9;
  cases->push_back(c);

  c = PictureCase("squeezenet_160",
                  "squeezenet_160_aiy/squeezenet_160res_5x5_0.75.pb", "input",
                  {1, 160, 160, 3}, "Prediction", "imagenet_300",
                  Scaled(127.5, 127.5));
  c.preprocessing.set_central_crop(0.875);
  c.labels = "images/imagenet_300/labels.csv";
  c.most_top1_loss = 1;
  c.least_agreement = 0.9;
  cases->push_back(c);

  c = PictureCase("flowers", "flowers_k2tf/output_graph.pb",
                  "firstConv2D_input", {1, 80, 80, 3}, "k2tfout_0", "flowers",
                  Scaled(0, 255));
  c.labels = "folders";
  c.least_agreement = 0.97;
  cases->push_back(c);

  c = PictureCase("cifar", "dotnet_cifar_model/frozen_model.pb", "Input",
                  {1, 32, 32, 3}, "Output", "cifar10", Scaled(0, 1));
  c.labels = "folders";
  c.least_agreement = 0.97;
  cases->push_back(c);

  v1::Preprocessing bgr;
  bgr.set_channel_order(v1::Preprocessing::BGR);
  for (const double mean : {104, 117, 123}) bgr.add_mean(mean);
  c = PictureCase("customvision", "customvision_squeezenet/model.pb",
                  "Placeholder", {1, 227, 227, 3}, "loss", "imagenet_300", bgr);
  c.least_agreement = 0.97;
  cases->push_back(c);

  c = PictureCase("poets_retrained", "poets_flowerlike/retrained_graph.pb",
                  "input", {1, 128, 128, 3}, "final_result", "flowers",
                  Scaled(127.5, 127.5));
  cases->push_back(c);
}

void AddPictureMakers(std::vector<AccuracyCase>* cases) {
  AccuracyCase c =
      PictureCase("openpose_mnv2", "openpose_mobilenet_v2_small/graph_opt.pb",
                  "image", {1, 160, 160, 3}, "Openpose/concat_stage7",
                  "imagenet_300", Scaled(127.5, 127.5));
  c.least_snr_db = 20;
  cases->push_back(c);

  c = PictureCase(
      "style_transfer_w8", "fast_style_transfer/fst_frozen_2018_quantized.pb",
      "img_placeholder", {400, 300, 3}, "preds", "imagenet_300", Scaled(0, 1));
  // 1.68 of its 1.72 MB are quint8 constants.
  c.is_coded = true;
  // Large pictures: seconds each in 8 bits.
  c.most = 8;
  c.least_snr_db = 20;
  cases->push_back(c);

  c = PictureCase("ssd_mobilenet",
                  "ssd_mobilenet_0.125_aiy/"
                  "mobilenet_ssd_256res_0.125_person_cat_dog.pb",
                  "image_tensor", {1, 256, 256, 3}, "", "imagenet_300",
                  Scaled(0, 1));
  c.inputs[0].dtype = tensorflow::DT_UINT8;
  c.outputs = {"detection_boxes", "detection_scores", "detection_classes",
               "num_detections"};
  c.least_snr_db = 20;
  cases->push_back(c);

  v1::Preprocessing bgr = Scaled(0, 1);
  bgr.set_channel_order(v1::Preprocessing::BGR);
  c = PictureCase("mtcnn", "mtcnn/mtcnn.pb", "input", {160, 160, 3}, "prob",
                  "imagenet_300", bgr);
  c.inputs.push_back(FloatInput("min_size", {}));
  c.inputs.push_back(FloatInput("thresholds", {3}));
  c.inputs.push_back(FloatInput("factor", {}));
  c.outputs = {"prob", "landmarks", "box"};
  for (const char* name : {"min_size", "thresholds", "factor"}) {
    c.constants.push_back(absl::StrCat("golden/mtcnn/in.", name, ".npy"));
  }
  c.finds_things = true;
  c.least_snr_db = 20;
  cases->push_back(c);
}

std::vector<AccuracyCase> MakeCases() {
  std::vector<AccuracyCase> cases;
  AddClassifiers(&cases);
  cases.push_back(DigitCase("mnist_fc", "tf2onnx_fc/frozen.pb", "X", "output"));
  cases.push_back(
      DigitCase("mnist_lstm", "tf2onnx_lstm/frozen.pb", "X", "output"));
  cases.back().inputs.push_back(FloatInput("keep_prob", {}));
  cases.back().constants = {"golden/mnist_lstm/in.keep_prob.npy"};
  cases.push_back(
      DigitCase("mnist_softmax", "mnist_softmax/mnist.pb", "input", "softmax"));
  cases.push_back(DigitCase("fakequant_mnist",
                            "fakequant_mnist_edgetpu/frozen_model.pb",
                            "flatten_input", "dense_1/Softmax"));
  cases.back().inputs[0].shape = {1, 28, 28};
  cases.push_back(
      SoundCase("conv_actions", "conv_actions_frozen/conv_actions_frozen.pb"));
  for (const auto& [name, file] :
       {std::pair("kws_dnn_s", "DNN_S"), std::pair("kws_cnn_s", "CNN_S"),
        std::pair("kws_ds_cnn_s", "DS_CNN_S"),
        std::pair("kws_ds_cnn_m", "DS_CNN_M"),
        std::pair("kws_lstm_s", "LSTM_S"), std::pair("kws_crnn_s", "CRNN_S")}) {
    cases.push_back(SoundCase(name, absl::StrCat("ml_kws/", file, ".pb")));
  }
  AddPictureMakers(&cases);
  AccuracyCase c;
  c.name = "alphazero19";
  c.model = "models/alphazero19_resnet/alphazero19.pb";
  c.inputs = {FloatInput("main_input", {1, 2, 6, 7})};
  c.outputs = {"value_head/Tanh", "policy_head/MatMul"};
  c.data = DataKind::kBoards;
  c.least_snr_db = 20;
  cases.push_back(c);
  c = {};
  c.name = "charrnn";
  c.model = "models/charrnn_lstm/frozen_model_mobile.pb";
  c.inputs = {Input("input_data", tensorflow::DT_INT32, {1, 1})};
  c.outputs = {"probs"};
  c.data = DataKind::kNumbers;
  c.most = 57;
  cases.push_back(c);
  return cases;
}

// Plane 0: stones of the player to move; plane 1: the other's; row 0 on top.
Tensor RandomBoard(std::mt19937_64* random) {
  constexpr int kRows = 6, kColumns = 7;
  std::vector<float> board(2 * kRows * kColumns, 0.0f);
  int filled[kColumns] = {};
  const int moves = static_cast<int>((*random)() % 36);
  for (int move = 0; move < moves; ++move) {
    const auto column = static_cast<int>((*random)() % kColumns);
    if (filled[column] == kRows) continue;
    const int row = kRows - 1 - filled[column]++;
    const int plane = (moves - move) % 2 == 0 ? 0 : 1;
    board[(plane * kRows + row) * kColumns + column] = 1.0f;
  }
  return Tensor::FromValues<float>(*Shape::FromDims({1, 2, kRows, kColumns}),
                                   board);
}

void MakeSamples(const AccuracyCase& c, AccuracySamples* data) {
  std::mt19937_64 random(kSplitSeed);
  const int64_t count = c.most > 0 ? c.most : kBoards;
  for (int64_t i = 0; i < count; ++i) {
    const auto id = static_cast<int32_t>(i);
    data->samples.push_back(
        {c.data == DataKind::kBoards
             ? RandomBoard(&random)
             : Tensor::FromValues<int32_t>(*Shape::FromDims({1, 1}), {id})});
  }
}

absl::Status ReadSamples(const AccuracyCase& c, const std::string& shared,
                         AccuracySamples* data) {
  optimize::LocalData local;
  const std::string path = JoinPath(shared, c.path);
  if (c.data == DataKind::kFolder) {
    OPTFARM_RETURN_IF_ERROR(local.AddFolder(path).status());
  } else {
    local.AddInput(graph::ToString(c.inputs[0].name), path);
  }
  for (size_t i = 0; i < c.constants.size(); ++i) {
    local.AddInput(graph::ToString(c.inputs[i + 1].name),
                   JoinPath(shared, c.constants[i]));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const optimize::Dataset dataset,
      optimize::Dataset::Open(local, c.preprocessing, c.inputs));
  optimize::Labels labels;
  if (c.labels == "folders") {
    // As many classes as folders.
    std::vector<std::string> folders;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      folders.push_back(dataset.SubfolderOf(i));
    }
    std::sort(folders.begin(), folders.end());
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    labels =
        optimize::GuessLabels(dataset, static_cast<int64_t>(folders.size()));
  } else if (!c.labels.empty()) {
    // Models for ImageNet here have 1001 classes.
    OPTFARM_ASSIGN_OR_RETURN(
        labels, optimize::LoadLabels(JoinPath(shared, c.labels), "", dataset,
                                     c.labels.ends_with(".csv") ? 1001 : -1));
  }
  for (const int64_t i : dataset.Choose(c.most, kSplitSeed)) {
    OPTFARM_ASSIGN_OR_RETURN(data->samples.emplace_back(), dataset.Sample(i));
    if (!labels.classes.empty()) data->labels.push_back(labels.classes[i]);
  }
  return absl::OkStatus();
}

}  // namespace

const std::vector<AccuracyCase>& AccuracyCases() {
  static const auto* const kCases = new std::vector<AccuracyCase>(MakeCases());
  return *kCases;
}

absl::StatusOr<AccuracySamples> LoadSamples(const AccuracyCase& c,
                                            const std::string& shared) {
  AccuracySamples data;
  if (c.data == DataKind::kBoards || c.data == DataKind::kNumbers) {
    MakeSamples(c, &data);
  } else {
    OPTFARM_RETURN_IF_ERROR(ReadSamples(c, shared, &data));
  }
  std::vector<int64_t> order(data.samples.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::mt19937_64 random(kSplitSeed);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random() % i]);
  }
  // Half of them where there are few.
  const auto calibration = static_cast<ptrdiff_t>(
      order.size() >= kCalibration * 3 / 2 ? kCalibration : order.size() / 2);
  data.calibration.assign(order.begin(), order.begin() + calibration);
  data.measured.assign(order.begin() + calibration, order.end());
  return data;
}

}  // namespace optfarm::bench
