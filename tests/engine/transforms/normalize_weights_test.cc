#include <cmath>
#include <limits>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNormalize[] = "normalize_weights(minimum_size=1)";

// A layer on its own, with what is needed to feed it.
struct LayerCase {
  const char* name;
  const char* op;
  std::vector<int64_t> input;
  std::vector<int64_t> weights;
  bool transpose_b = false;

  bool is_product() const { return std::string(op) == "MatMul"; }
  int64_t weight_count() const {
    int64_t count = 1;
    for (int64_t size : weights) count *= size;
    return count;
  }
  // Depthwise: every input channel has as many outputs as the last says.
  int64_t channels() const {
    if (transpose_b) return weights[0];
    const bool is_depthwise = std::string(op) == "DepthwiseConv2dNative";
    return is_depthwise ? weights[2] * weights[3] : weights.back();
  }
  int64_t ChannelOf(int64_t i) const {
    return transpose_b ? i / weights[1] : i % channels();
  }
};

std::vector<LayerCase> LayerCases() {
  return {
      {"Conv2D", "Conv2D", {1, 5, 5, 2}, {3, 3, 2, 4}},
      {"Depthwise", "DepthwiseConv2dNative", {1, 5, 5, 3}, {3, 3, 3, 2}},
      {"MatMul", "MatMul", {2, 6}, {6, 5}},
      {"MatMulTransposed", "MatMul", {2, 6}, {5, 6}, true},
  };
}

// Weights whose channel c is about 7^c times the first.
std::vector<float> UnevenWeights(const LayerCase& layer) {
  std::vector<float> values = WaveValues(layer.weight_count());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= std::pow(7.0f, static_cast<float>(layer.ChannelOf(i)));
  }
  return values;
}

// in -> layer (weights w) -> relu.
GraphBuilder Builder(const LayerCase& layer,
                     const std::vector<float>& weights) {
  GraphBuilder b;
  b.Placeholder("in", layer.input);
  b.Floats("w", layer.weights, weights);
  if (layer.is_product()) {
    b.Node("layer", "MatMul", {"in", "w"},
           FloatT({{"transpose_a", BoolAttr(false)},
                   {"transpose_b", BoolAttr(layer.transpose_b)}}));
  } else {
    b.Node("layer", layer.op, {"in", "w"},
           FloatT({{"strides", IntsAttr({1, 1, 1, 1})},
                   {"padding", StringAttr("SAME")}}));
  }
  b.Node("relu", "Relu", {"layer"}, FloatT());
  return b;
}

std::vector<float> RunLayer(const Graph& graph, const LayerCase& layer,
                            const std::string& output) {
  return testing::Run(graph, "in", Wave(*runtime::Shape::FromDims(layer.input)),
                      output);
}

std::vector<float> Magnitudes(const LayerCase& layer,
                              const std::vector<float>& weights) {
  std::vector<float> largest(static_cast<size_t>(layer.channels()), 0.0f);
  for (size_t i = 0; i < weights.size(); ++i) {
    float& channel = largest[layer.ChannelOf(i)];
    // One quantized value more is below zero than above.
    channel = std::max(
        channel, weights[i] > 0 ? weights[i] * 128.0f / 127.0f : -weights[i]);
  }
  return largest;
}

class NormalizeWeightsTest : public ::testing::TestWithParam<LayerCase> {};

TEST_P(NormalizeWeightsTest, ComputesTheSameNumbers) {
  Graph graph = Builder(GetParam(), UnevenWeights(GetParam())).Build();
  const std::vector<float> before = RunLayer(graph, GetParam(), "layer");
  EXPECT_EQ(MustApply(&graph, kNormalize, "in", "layer,relu").nodes_changed, 1);
  const std::vector<float> after = RunLayer(graph, GetParam(), "layer");
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], 1e-5f * (1.0f + std::abs(before[i])));
  }
}

TEST_P(NormalizeWeightsTest, GivesEveryChannelTheSameMagnitude) {
  const std::vector<float> weights = UnevenWeights(GetParam());
  const std::vector<float> before = Magnitudes(GetParam(), weights);
  const float most = *std::max_element(before.begin(), before.end());
  Graph graph = Builder(GetParam(), weights).Build();
  MustApply(&graph, kNormalize, "in", "relu");
  EXPECT_THAT(Magnitudes(GetParam(), FloatsOf(graph, "w")),
              Each(FloatNear(most, 1e-5f * most)));
}

TEST_P(NormalizeWeightsTest, CodesOfTheWeightsDecodeToWithinHalfAStep) {
  // Both signs at their largest: the range is as far up as down.
  std::vector<float> weights = UnevenWeights(GetParam());
  std::vector<bool> is_first(static_cast<size_t>(GetParam().channels()), true);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto channel = static_cast<size_t>(GetParam().ChannelOf(i));
    if (!is_first[channel]) continue;
    is_first[channel] = false;
    weights[i] = (channel % 2 == 0 ? 2.0f : -2.0f) *
                 std::pow(7.0f, static_cast<float>(channel));
  }
  Graph graph = Builder(GetParam(), weights).Build();
  MustApply(&graph, kNormalize, "in", "relu");
  const std::vector<float> before = FloatsOf(graph, "w");
  MustApply(&graph, "quantize_weights(minimum_size=1, ignore_op=Mul)", "in",
            "relu");
  const std::vector<float> after = testing::Run(
      graph, "in", Wave(*runtime::Shape::FromDims(GetParam().input)), "w");
  const auto [min, max] = std::minmax_element(before.begin(), before.end());
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], 0.502f * (*max - *min) / 255) << i;
  }
}

TEST_P(NormalizeWeightsTest, KeepsTheNameForTheResult) {
  Graph graph = Builder(GetParam(), UnevenWeights(GetParam())).Build();
  MustApply(&graph, kNormalize, "in", "layer,relu");
  EXPECT_EQ(Show(graph, "layer"), "Mul(layer/normalized, layer/channel_scale)");
  EXPECT_EQ(Show(graph, "layer/normalized"),
            std::string(GetParam().op) + "(in, w)");
  EXPECT_EQ(Show(graph, "relu"), "Relu(layer)");
}

TEST_P(NormalizeWeightsTest, LeavesAChannelOfZerosAlone) {
  std::vector<float> weights = UnevenWeights(GetParam());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (GetParam().ChannelOf(i) == 1) weights[i] = 0.0f;
  }
  Graph graph = Builder(GetParam(), weights).Build();
  const std::vector<float> before = RunLayer(graph, GetParam(), "relu");
  MustApply(&graph, kNormalize, "in", "relu");
  EXPECT_EQ(FloatsOf(graph, "layer/channel_scale")[1], 1.0f);
  EXPECT_EQ(Magnitudes(GetParam(), FloatsOf(graph, "w"))[1], 0.0f);
  const std::vector<float> after = RunLayer(graph, GetParam(), "relu");
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], 1e-5f * (1.0f + before[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, NormalizeWeightsTest,
                         ::testing::ValuesIn(LayerCases()),
                         [](const ::testing::TestParamInfo<LayerCase>& test) {
                           return std::string(test.param.name);
                         });

LayerCase Product() { return LayerCases()[2]; }

TEST(NormalizeWeightsLimitsTest, LeavesWeightsBelowTheMinimumSize) {
  Graph graph = Builder(Product(), UnevenWeights(Product())).Build();
  TransformReport report =
      MustApply(&graph, "normalize_weights(minimum_size=31)", "in", "relu");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(report.skipped, IsEmpty());
  report =
      MustApply(&graph, "normalize_weights(minimum_size=30)", "in", "relu");
  EXPECT_EQ(report.nodes_changed, 1);
}

TEST(NormalizeWeightsLimitsTest, LeavesWeightsThatAreAlikeAlready) {
  Graph graph = Builder(Product(), std::vector<float>(30, -2.5f)).Build();
  EXPECT_EQ(MustApply(&graph, kNormalize, "in", "relu").nodes_changed, 0);
  EXPECT_EQ(Show(graph, "layer"), "MatMul(in, w)");
}

TEST(NormalizeWeightsLimitsTest, LeavesWeightsOfZeros) {
  Graph graph = Builder(Product(), std::vector<float>(30, 0.0f)).Build();
  EXPECT_EQ(MustApply(&graph, kNormalize, "in", "relu").nodes_changed, 0);
  EXPECT_THAT(FloatsOf(graph, "w"), Each(0.0f));
}

TEST(NormalizeWeightsLimitsTest, SkipsSharedWeightsAndSaysSo) {
  const std::vector<float> weights = UnevenWeights(Product());
  GraphBuilder b = Builder(Product(), weights);
  b.Node("other", "Relu", {"w"}, FloatT());
  Graph graph = b.Build();
  const TransformReport report =
      MustApply(&graph, kNormalize, "in", "relu,other");
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("layer: ")));
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_EQ(FloatsOf(graph, "w"), weights);
}

TEST(NormalizeWeightsLimitsTest, SkipsWeightsThatAreAnOutput) {
  Graph graph = Builder(Product(), UnevenWeights(Product())).Build();
  const TransformReport report = MustApply(&graph, kNormalize, "in", "relu,w");
  EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("layer: ")));
  EXPECT_EQ(FloatsOf(graph, "w"), UnevenWeights(Product()));
}

TEST(NormalizeWeightsLimitsTest, SkipsNaNAndInfinityAndSaysSo) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::infinity()}) {
    std::vector<float> weights = UnevenWeights(Product());
    weights[7] = bad;
    Graph graph = Builder(Product(), weights).Build();
    const TransformReport report = MustApply(&graph, kNormalize, "in", "relu");
    EXPECT_THAT(Skipped(report), ElementsAre(HasSubstr("NaN or infinite")));
    EXPECT_EQ(Show(graph, "layer"), "MatMul(in, w)");
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
