// The models on which TensorFlow's own tools failed, with data: the recipe int8
// under the bound that its answers be as close to the float model's as those of
// 8-bit weights are. The search puts layers back to float until they are, on
// calibration samples; here samples count that it never saw.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "base/files.h"
#include "engine/formats/samples/npy.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/optimize/optimize_job.h"
#include "engine/optimize/recipes/recipes.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::testing {
namespace {

// UNITS: decibel. Closer than 8-bit weights by so much on calibration samples,
// so that other samples are not further off.
constexpr double kMargin = 3;

struct BoundedCase {
  std::string name;
  std::string model;
  std::string input;
  std::string dtype;
  std::vector<int64_t> shape;
  // A folder of samples; empty: boards are made up.
  std::string data;
  std::vector<std::string> outputs;
  // Calibrated on, and as many others measured on.
  int samples = 40;
  // UNITS: decibel, how much less is as close: where the noise is that of
  // loops, whose weights both have in 8 bits, who is ahead depends on the
  // samples.
  double slack = 0;
};

void PrintTo(const BoundedCase& c, std::ostream* out) { *out << c.name; }

optimize::OptimizeRequest Request(const BoundedCase& c,
                                  const std::string& recipe) {
  optimize::OptimizeRequest request;
  request.model_path = TestDataPath("models/" + c.model);
  request.recipe = *optimize::BuiltInRecipe(recipe);
  request.recipe.mutable_calibration()->set_seed(1);
  request.recipe.mutable_calibration()->set_max_samples(c.samples);
  request.recipe.mutable_verification()->set_samples(c.samples);
  request.recipe.mutable_verification()->set_per_layer(false);
  request.recipe.clear_bounds();
  v1::TensorSpec& input = request.inputs.emplace_back();
  input.set_name(c.input);
  input.set_dtype(c.dtype);
  input.set_shape_known(true);
  for (const int64_t dim : c.shape) input.add_shape(dim);
  request.outputs = c.outputs;
  request.threads = 2;
  request.out_folder = FreshFolder();
  return request;
}

// Zeros and ones as a game's stones.
std::string WriteBoards(const BoundedCase& c) {
  constexpr int64_t kBoards = 80;
  std::mt19937 random(11);
  std::vector<int64_t> dims = {kBoards};
  dims.insert(dims.end(), c.shape.begin(), c.shape.end());
  const runtime::Shape shape = *runtime::Shape::FromDims(dims);
  std::vector<float> stones(static_cast<size_t>(shape.num_elements()));
  for (float& stone : stones) stone = random() % 4 == 0 ? 1.0f : 0.0f;
  const std::string path = JoinPath(FreshFolder(), "boards.npy");
  EXPECT_TRUE(
      formats::SaveNpy(
          runtime::Tensor::FromValues<float>(shape, stones).ToProto(), path)
          .ok());
  return path;
}

void GiveData(const BoundedCase& c, optimize::OptimizeRequest* request) {
  if (c.data.empty()) {
    request->data.AddInput(c.input, WriteBoards(c));
    return;
  }
  OPTFARM_ASSERT_OK(request->data.AddFolder(TestDataPath(c.data)));
  const bool is_scaled = c.dtype != "uint8";
  request->data.SetMeanAndStd(is_scaled ? 127.5 : 0, is_scaled ? 127.5 : 1);
  if (c.data == "speech_commands") {
    v1::TensorSpec& rate = request->inputs.emplace_back();
    rate.set_name("decoded_sample_data:1");
    rate.set_dtype("int32");
    rate.set_shape_known(true);
  }
}

double WorstSnr(const BoundedCase& c, const v1::Report& report) {
  double snr = std::numeric_limits<double>::infinity();
  for (const v1::TensorComparison& output : report.outputs_compared()) {
    EXPECT_EQ(output.samples(), c.samples) << output.name();
    snr = std::min(snr, output.snr_db());
  }
  return snr;
}

bool HasFewWeights(const graph::Graph& graph, const graph::Node& product) {
  const auto weights =
      transforms::FloatView::Of(graph.node(product.inputs()[1].node));
  return weights.ok() && weights->values().size() < 64;
}

class BoundedInt8Test : public ::testing::TestWithParam<BoundedCase> {};

TEST_P(BoundedInt8Test, AnswersAsCloseAsWithEightBitWeights) {
  OPTFARM_REQUIRE_TEST_DATA();
  const BoundedCase& c = GetParam();
  optimize::OptimizeRequest weights8 = Request(c, "weights8");
  weights8.recipe.clear_keep_float();
  GiveData(c, &weights8);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report expected,
                               optimize::RunOptimize(weights8, nullptr));
  ASSERT_EQ(expected.search_size(), 1);
  optimize::OptimizeRequest int8 = Request(c, "int8");
  GiveData(c, &int8);
  const double bound = expected.search(0).snr_db() + kMargin;
  int8.recipe.mutable_bounds()->set_min_snr_db(bound);
  // Float nodes are looked up by their names below.
  int8.recipe.mutable_file_size()->set_shorten_names(false);
  v1::KeepFloat* keep = int8.recipe.mutable_keep_float();
  keep->clear_aim_agreement();
  keep->set_aim_snr_db(bound);
  keep->set_layer_attempts(32);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const v1::Report report,
                               optimize::RunOptimize(int8, nullptr));
  RecordProperty("int8_db", std::to_string(WorstSnr(c, report)));
  RecordProperty("weights8_db", std::to_string(WorstSnr(c, expected)));
  RecordProperty("kept_float", report.kept_float_size());
  EXPECT_GE(WorstSnr(c, report), WorstSnr(c, expected) - c.slack);
  // Who is not 8-bit is listed with the reason.
  std::set<std::string> explained;
  for (const v1::TransformStats& step : report.transforms()) {
    for (const v1::SkippedMatch& skip : step.skipped()) {
      EXPECT_FALSE(skip.reason().empty()) << skip.node();
      explained.insert(skip.node());
    }
  }
  // And what the search put back, of which the report says what it gained.
  explained.insert(report.kept_float().begin(), report.kept_float().end());
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      tensorflow::GraphDef def,
      formats::LoadGraphDef(JoinPath(int8.out_folder, "optimized.pb")));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(def)));
  for (const graph::NodeId id : graph.Ids()) {
    const graph::Node& node = graph.node(id);
    if (node.op() != "Conv2D" && node.op() != "MatMul" &&
        node.op() != "DepthwiseConv2dNative") {
      continue;
    }
    // The recipe leaves them alone.
    if (HasFewWeights(graph, node)) continue;
    const std::string name(absl::StripSuffix(node.name(), "/normalized"));
    EXPECT_TRUE(explained.count(name) + explained.count(node.name()) > 0)
        << node.name() << " stays in float untold";
  }
}

BoundedCase Words(const std::string& name, const std::string& file,
                  double slack = 0) {
  return {
      name,       "ml_kws/" + file + ".pb", "decoded_sample_data:0", "float",
      {16000, 1}, "speech_commands",        {"labels_softmax"},      40,
      slack};
}

INSTANTIATE_TEST_SUITE_P(
    Models, BoundedInt8Test,
    ::testing::Values(
        BoundedCase{"openpose",
                    "openpose_mobilenet_v2_small/graph_opt.pb",
                    "image",
                    "float",
                    {1, 160, 160, 3},
                    "images/flowers",
                    {"Openpose/concat_stage7"},
                    12},
        BoundedCase{"alphazero19",
                    "alphazero19_resnet/alphazero19.pb",
                    "main_input",
                    "float",
                    {1, 2, 6, 7},
                    "",
                    {"value_head/Tanh", "policy_head/MatMul"}},
        // The boxes and scores of all anchors: the list of the best changes its
        // order for the least difference.
        BoundedCase{"ssd_mobilenet",
                    "ssd_mobilenet_0.125_aiy/"
                    "mobilenet_ssd_256res_0.125_person_cat_dog.pb",
                    "image_tensor",
                    "uint8",
                    {1, 256, 256, 3},
                    "images/flowers",
                    {"concat", "concat_1"},
                    12},
        Words("kws_crnn_s", "CRNN_S", 0.5), Words("kws_lstm_s", "LSTM_S", 0.5),
        Words("kws_cnn_s", "CNN_S"), Words("kws_ds_cnn_m", "DS_CNN_M")),
    [](const ::testing::TestParamInfo<BoundedCase>& test) {
      return test.param.name;
    });

}  // namespace
}  // namespace optfarm::testing
