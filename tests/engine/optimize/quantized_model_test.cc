// Models that come quantized keep their numbers, whatever recipe they get,
// unless it is told to turn them into float.

#include "engine/optimize/quantized_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "engine/export/convert_file.h"
#include "engine/formats/models/load_model.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/optimize/report/exports.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_layers.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::TestDataPath;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using transforms::CountQuantizedLayers;

graph::Graph Load(const std::string& path) {
  auto def = formats::LoadModelDef(path);
  EXPECT_TRUE(def.ok()) << def.status();
  return *graph::Graph::FromDef(*std::move(def));
}

std::string BitsOf(const graph::Graph& graph, graph::Endpoint input) {
  const graph::Node& node = graph.node(input.node);
  if (!transforms::IsConst(node)) return "";
  const auto value = transforms::ConstValue(node);
  if (!value.ok()) return "";
  return {static_cast<const char*>(value->raw()),
          static_cast<size_t>(value->TotalBytes())};
}

// Scale and zero point of each quantized value, and the bytes of each quantized
// constant, sorted, because formats hold axes in other orders.
std::multiset<std::string> NumbersOf(const graph::Graph& graph) {
  std::multiset<std::string> numbers;
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    const bool dequantizes = node.op() == "DequantizeLinear";
    if (node.op() != "QuantizeLinear" && !dequantizes) continue;
    std::string value =
        dequantizes ? BitsOf(graph, node.inputs()[0]) : std::string();
    std::sort(value.begin(), value.end());
    if (dequantizes && value.empty()) continue;
    numbers.insert(absl::StrCat(BitsOf(graph, node.inputs()[1]), "|",
                                BitsOf(graph, node.inputs()[2]), "|", value));
  }
  return numbers;
}

OptimizeRequest Request(const std::string& model, const std::string& recipe) {
  OptimizeRequest request;
  request.model_path = model;
  request.recipe = *BuiltInRecipe(recipe);
  request.out_folder = FreshFolder();
  return request;
}

void AddSamples(OptimizeRequest* request) {
  const std::string data = testing::WriteSamples(12, FreshFolder());
  request->data.AddInput("input", JoinPath(data, "x.npy"));
}

// The small model as recipe int8 makes a TensorFlow Lite file of it.
std::string QuantizedModel() {
  OptimizeRequest request = Request(
      testing::WriteModel(testing::SmallModel(), FreshFolder()), "int8");
  AddSamples(&request);
  request.out_formats = {v1::TFLITE};
  const auto report = RunOptimize(request, nullptr);
  EXPECT_TRUE(report.ok()) << report.status();
  return JoinPath(request.out_folder, "optimized.tflite");
}

TEST(QuantizedModelTest, KeepsItsNumbersWithEachRecipe) {
  const std::string model = QuantizedModel();
  const graph::Graph original = Load(model);
  EXPECT_TRUE(CountQuantizedLayers(original).are_most());
  for (const char* recipe : {"int8", "fp32", "weights8", "fp16-weights"}) {
    SCOPED_TRACE(recipe);
    OptimizeRequest request = Request(model, recipe);
    request.out_formats = {v1::ONNX, v1::TFLITE};
    OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                                 RunOptimize(request, nullptr));
    EXPECT_TRUE(report.passed()) << report.DebugString();
    EXPECT_THAT(report.warnings(), Contains(HasSubstr("is quantized already")));
    ASSERT_EQ(report.outputs_compared_size(), 1);
    EXPECT_EQ(report.outputs_compared(0).max_abs_error(), 0);
    ASSERT_EQ(report.exports_size(), 2);
    for (const v1::ExportedModel& made : report.exports()) {
      EXPECT_EQ(made.problems_size(), 0) << made.DebugString();
      EXPECT_THAT(
          NumbersOf(Load(JoinPath(request.out_folder, made.artifact()))),
          IsSupersetOf(NumbersOf(original)));
    }
    const graph::Graph kept =
        Load(JoinPath(request.out_folder, "optimized.pb"));
    EXPECT_EQ(NumbersOf(kept), NumbersOf(original));
    EXPECT_TRUE(CountQuantizedLayers(kept).are_most());
  }
}

TEST(QuantizedModelTest, DequantizesOnRequest) {
  OptimizeRequest request = Request(QuantizedModel(), "int8");
  AddSamples(&request);
  OPTFARM_ASSERT_OK(BeginWithDequantizing(&request.recipe));
  request.is_for_devices = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_TRUE(report.passed()) << report.DebugString();
  EXPECT_THAT(report.warnings(),
              Contains(HasSubstr("was turned into float first")));
  EXPECT_THAT(report.transform_string(), HasSubstr("dequantize_model"));
  EXPECT_EQ(report.outputs_compared(0).top1_agreement(), 1);
  // What it is compared with computes in float; the result does not.
  const graph::Graph floats = Load(JoinPath(request.out_folder, "float.pb"));
  EXPECT_EQ(CountQuantizedLayers(floats).quantized, 0);
  EXPECT_GT(CountQuantizedLayers(floats).layers, 0);
  EXPECT_GT(report.calibration().ranges(), 0);
}

// What a converter leaves of a model by dynamic range quantization.
std::string ModelWithQuantizedWeights() {
  exporting::ConvertOptions options;
  options.written.format = exporting::ModelFormat::kTflite;
  options.written.int8_weights = true;
  const std::string model =
      testing::WriteModel(testing::SmallModel(), FreshFolder());
  const auto file = exporting::ConvertGraph(Load(model), options);
  EXPECT_TRUE(file.ok()) << file.status();
  const std::string path = JoinPath(FreshFolder(), "weights.tflite");
  EXPECT_TRUE(WriteFileAtomically(path, file->bytes).ok());
  return path;
}

TEST(QuantizedModelTest, KeepsWeightsOfDynamicRangeModels) {
  const std::string model = ModelWithQuantizedWeights();
  const transforms::QuantizedLayers came = CountQuantizedLayers(Load(model));
  ASSERT_GT(came.weights_only, 0);
  EXPECT_EQ(came.quantized, 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const v1::Report kept, RunOptimize(Request(model, "weights8"), nullptr));
  EXPECT_THAT(kept.warnings(),
              Contains(HasSubstr("their scales were kept as they are")));
  EXPECT_EQ(kept.outputs_compared(0).max_abs_error(), 0);
  OptimizeRequest anew = Request(model, "int8");
  AddSamples(&anew);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(anew, nullptr));
  EXPECT_THAT(report.warnings(), Contains(HasSubstr("quantizes values too")));
}

// How many layers are quantized in a file with 8-bit activations.
int LayersAs8Bits(const graph::Graph& made, exporting::ModelFormat format) {
  exporting::ConvertOptions options;
  options.written.format = format;
  const auto file = exporting::ConvertGraph(made, options);
  EXPECT_TRUE(file.ok()) << file.status();
  auto read = formats::LoadModelFromMemory(file->bytes, std::nullopt, "m");
  EXPECT_TRUE(read.ok()) << read.status();
  const int layers =
      CountQuantizedLayers(*graph::Graph::FromDef(std::move(read->def)))
          .quantized;
  EXPECT_GT(layers, 0);
  return layers;
}

// As a recipe leaves them that makes the file smaller still.
TEST(QuantizedModelTest, WritesRangesThatWerePutTogether) {
  OptimizeRequest request = Request(
      testing::WriteModel(testing::SmallModel(), FreshFolder()), "int8");
  AddSamples(&request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  graph::Graph made = Load(JoinPath(request.out_folder, "optimized.pb"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto steps,
      transforms::ParseTransforms("pool_constants(as_half=true)"));
  OPTFARM_ASSERT_OK(transforms::RunTransforms(&made, steps, {{"input", 0}},
                                              {{report.outputs(0).name(), 0}})
                        .status());
  LayersAs8Bits(made, exporting::ModelFormat::kTflite);
}

// Activations of 16 bits, weights of 8, biases of 64 in the file.
TEST(QuantizedModelTest, GetsActivationsOf16Bits) {
  OptimizeRequest request = Request(
      testing::WriteModel(testing::SmallModel(), FreshFolder()), "int8");
  AddSamples(&request);
  OPTFARM_ASSERT_OK(RunOptimize(request, nullptr).status());
  const graph::Graph made = Load(JoinPath(request.out_folder, "optimized.pb"));
  for (const auto format :
       {exporting::ModelFormat::kTflite, exporting::ModelFormat::kOnnx}) {
    exporting::ConvertOptions options;
    options.written.format = format;
    options.written.opset = 21;
    options.written.activations = "int16";
    OPTFARM_ASSERT_OK_AND_ASSIGN(const exporting::ConvertedModel file,
                                 exporting::ConvertGraph(made, options));
    ASSERT_TRUE(file.difference.has_value()) << file.line;
    EXPECT_LE(file.difference->largest, 0.02 * file.difference->magnitude);
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        auto read, formats::LoadModelFromMemory(file.bytes, std::nullopt, "m"));
    const graph::Graph graph = *graph::Graph::FromDef(std::move(read.def));
    int wide = 0;
    for (const graph::NodeId id : graph.Ids()) {
      const graph::Node& node = graph.node(id);
      if (node.op() != "QuantizeLinear") continue;
      const auto zero =
          transforms::ConstValue(graph.node(node.inputs()[2].node));
      ASSERT_TRUE(zero.ok());
      EXPECT_EQ(zero->dtype(), tensorflow::DT_INT16);
      EXPECT_EQ(zero->AsInt64s()->front(), 0);
      ++wide;
    }
    EXPECT_GE(wide, 3);
    EXPECT_EQ(CountQuantizedLayers(graph).quantized,
              LayersAs8Bits(made, format));
    EXPECT_EQ(CountQuantizedLayers(graph).weight_bits, 8);
  }
}

// The class names and the normalization that a job knows go into the file.
TEST(QuantizedModelTest, FilesNameTheClasses) {
  OptimizeRequest request = Request(
      testing::WriteModel(testing::SmallModel(), FreshFolder()), "fp32");
  AddSamples(&request);
  const std::string labels = JoinPath(FreshFolder(), "labels.txt");
  OPTFARM_ASSERT_OK(WriteFileAtomically(labels, "left\nmiddle\nright\n"));
  request.data.SetMeanAndStd(127.5, 127.5);
  v1::Report report;
  v1::TensorSpec& input = *report.add_inputs();
  for (const int64_t dim : {1, 8, 8, 1}) input.add_shape(dim);
  report.add_outputs()->add_shape(3);
  request.data.AddLabels(labels);
  const formats::TfliteMetadata metadata = MetadataOf(
      request.recipe.calibration().preprocessing(), request.data, report);
  EXPECT_THAT(metadata.labels,
              ::testing::ElementsAre("left", "middle", "right"));
  EXPECT_THAT(metadata.mean, ::testing::ElementsAre(127.5f));
  EXPECT_TRUE(metadata.is_gray);
  OPTFARM_ASSERT_OK(
      WriteExports(Load(request.model_path), {v1::TFLITE}, request.out_folder,
                   metadata, [&] {
                     report.mutable_inputs(0)->set_name("input");
                     report.mutable_inputs(0)->set_shape_known(true);
                     report.mutable_outputs(0)->set_name("softmax");
                     return &report;
                   }()));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string file,
      ReadFile(JoinPath(request.out_folder, "optimized.tflite")));
  EXPECT_THAT(file, HasSubstr("labels.txtleft\nmiddle\nright\n"));
  EXPECT_THAT(file, HasSubstr("TFLITE_METADATA"));
  // Names of other classes than the model's are left out.
  report.mutable_outputs(0)->set_shape(0, 4);
  EXPECT_TRUE(MetadataOf(request.recipe.calibration().preprocessing(),
                         request.data, report)
                  .labels.empty());
}

TEST(QuantizedModelTest, AFloatModelIsNone) {
  const std::string model =
      testing::WriteModel(testing::SmallModel(), FreshFolder());
  EXPECT_FALSE(CountQuantizedLayers(Load(model)).are_most());
  EXPECT_EQ(CountQuantizedLayers(Load(model)).layers, 3);
  OptimizeRequest request = Request(model, "int8");
  AddSamples(&request);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               RunOptimize(request, nullptr));
  EXPECT_THAT(report.warnings(), Not(Contains(HasSubstr("quantized already"))));
}

TEST(QuantizedModelTest, RealModelsAreFoundOut) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const char* name :
       {"tflite/mobilenet_v1_025_128_quant.tflite", "tflite/vww_96_int8.tflite",
        "tflite/resnet8_int8.tflite", "onnx/micro_kws_qdq.onnx"}) {
    const graph::Graph graph =
        Load(TestDataPath(absl::StrCat("interchange/models/", name)));
    EXPECT_TRUE(CountQuantizedLayers(graph).are_most()) << name;
  }
  // 8-bit weights alone.
  EXPECT_FALSE(
      CountQuantizedLayers(
          Load(TestDataPath("interchange/models/tflite/yolox_nano_dyn.tflite")))
          .are_most());
}

}  // namespace
}  // namespace optfarm::optimize
