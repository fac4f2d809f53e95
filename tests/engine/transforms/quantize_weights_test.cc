#include <cmath>
#include <limits>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Weights(const std::vector<float>& values) {
  GraphBuilder b;
  b.Floats("w", {static_cast<int64_t>(values.size())}, values);
  b.Node("out", "Relu", {"w"}, FloatT());
  return b.Build();
}

std::vector<float> RoundTrip(Graph graph, const std::string& parameters = "") {
  MustApply(&graph,
            absl::StrCat("quantize_weights(minimum_size=1", parameters, ")"),
            "", "out");
  const auto session =
      runtime::Session::Create(graph, {}, {graph::TensorName{"w", 0}});
  EXPECT_TRUE(session.ok()) << session.status();
  const auto values = (*session)->Run({});
  EXPECT_TRUE(values.ok()) << values.status();
  const absl::Span<const float> flat = (*values)[0].flat<float>();
  return {flat.begin(), flat.end()};
}

TEST(QuantizeWeightsTest, QuantizesFromTheMinimumSizeOn) {
  Graph small = Weights(WaveValues(1023));
  EXPECT_EQ(MustApply(&small, "quantize_weights", "", "out").nodes_changed, 0);
  Graph large = Weights(WaveValues(1024));
  MustApply(&large, "quantize_weights", "", "out");
  EXPECT_THAT(Names(large), ElementsAre("w_quantized_const", "w_quantized_min",
                                        "w_quantized_max", "w", "out"));
  EXPECT_EQ(Show(large, "w"),
            "Dequantize(w_quantized_const, w_quantized_min, w_quantized_max)");
  EXPECT_EQ(large.node(large.Find("w")).FindAttr("mode")->s(), "MIN_FIRST");
}

TEST(QuantizeWeightsTest, ANegativeMinimumLeavesAllAsTheyAre) {
  Graph graph = Weights(WaveValues(2000));
  const TransformReport report =
      MustApply(&graph, "quantize_weights(minimum_size=-1)", "", "out");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("negative")));
  EXPECT_THAT(Names(graph), ElementsAre("w", "out"));
}

TEST(QuantizeWeightsTest, LosesAtMostOneStep) {
  std::vector<float> wave = WaveValues(2000);
  for (float& value : wave) value += 0.1f;
  EXPECT_THAT(RoundTrip(Weights(wave)), AllNear(wave, 2.0f / 255.0f));
}

TEST(QuantizeWeightsTest, KeepsZeroInTheRange) {
  Graph positive = Weights({1, 2, 3, 4});
  MustApply(&positive, "quantize_weights(minimum_size=1)", "", "out");
  EXPECT_THAT(FloatsOf(positive, "w_quantized_min"), ElementsAre(0));
  EXPECT_THAT(FloatsOf(positive, "w_quantized_max"), ElementsAre(4));
  Graph negative = Weights({-1, -2, -3, -4});
  MustApply(&negative, "quantize_weights(minimum_size=1)", "", "out");
  EXPECT_THAT(FloatsOf(negative, "w_quantized_min"), ElementsAre(-4));
  EXPECT_NEAR(FloatsOf(negative, "w_quantized_max")[0], 0, 1e-30);
}

// A long tail: the sum of squared errors is less when it is cut off.
TEST(QuantizeWeightsTest, CutsTailsOffWhenAskedTo) {
  std::vector<float> values;
  for (int i = 0; i < 20000; ++i) {
    const double p = (i + 0.5) / 20000;
    values.push_back(
        static_cast<float>(p < 0.5 ? std::log(2 * p) : -std::log(2 * (1 - p))));
  }
  values.push_back(40);
  const auto error = [&](const std::string& parameters) {
    const std::vector<float> coded = RoundTrip(Weights(values), parameters);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double e = static_cast<double>(coded[i]) - values[i];
      sum += e * e;
    }
    return sum;
  };
  // The value that is cut off has a part in the sum itself.
  EXPECT_LT(error(", range=mse"), 0.97 * error(""));
  Graph cut = Weights(values);
  MustApply(&cut,
            "quantize_weights(minimum_size=1, range=percentile, percentile=1)",
            "", "out");
  // ln 50: one percent of a Laplace distribution lies beyond.
  EXPECT_NEAR(FloatsOf(cut, "w_quantized_max")[0], 3.91, 0.05);
  EXPECT_NEAR(FloatsOf(cut, "w_quantized_min")[0], -3.91, 0.05);
}

TEST(QuantizeWeightsTest, NamesTheRangesThereAre) {
  Graph graph = Weights({1, 2, 3, 4});
  EXPECT_THAT(Apply(&graph, "quantize_weights(range=kl)", "", "out").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("give min_max, mse or percentile")));
}

TEST(QuantizeWeightsTest, ManagesTensorsOfOneValue) {
  for (const float value : {0.0f, 5.0f, -5.0f}) {
    const std::vector<float> values(8, value);
    EXPECT_THAT(RoundTrip(Weights(values)), AllNear(values, 0.03f)) << value;
  }
}

TEST(QuantizeWeightsTest, LeavesNaNAndInfinityAndSaysSo) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Graph graph = Weights({1, 2, bad, 4});
    const TransformReport report =
        MustApply(&graph, "quantize_weights(minimum_size=1)", "", "out");
    EXPECT_EQ(Show(graph, "w"), "Const()");
    EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("'w'")));
  }
}

TEST(QuantizeWeightsTest, LeavesWhatItIsTold) {
  for (const char* parameter : {"ignore_op=Relu", "exclude_node=w"}) {
    Graph graph = Weights(WaveValues(2000));
    MustApply(&graph, std::string("quantize_weights(") + parameter + ")", "",
              "out");
    EXPECT_EQ(Show(graph, "w"), "Const()") << parameter;
  }
}

TEST(QuantizeWeightsTest, KeepsTheConstantInItsBranch) {
  GraphBuilder b;
  b.Placeholder("first", {});
  b.Floats("w", {2}, {1, 2});
  b.mutable_def()->mutable_node(1)->add_input("^first");
  b.Node("out", "Relu", {"w"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "quantize_weights(minimum_size=1)", "first", "out");
  EXPECT_EQ(Show(graph, "w_quantized_const"), "Const(^first)");
  EXPECT_EQ(Show(graph, "w_quantized_min"), "Const(^first)");
}

TEST(QuantizeWeightsTest, TakesAnotherNameWhereTheUsualIsTaken) {
  GraphBuilder b;
  b.Placeholder("w_quantized_min", {});
  b.Floats("w", {2}, {1, 2});
  b.Node("out", "Add", {"w", "w_quantized_min"}, FloatT());
  Graph graph = b.Build();
  MustApply(&graph, "quantize_weights(minimum_size=1)", "w_quantized_min",
            "out");
  EXPECT_EQ(
      Show(graph, "w"),
      "Dequantize(w_quantized_const, w_quantized_min_1, w_quantized_max)");
}

TEST(RoundWeightsTest, RoundsFromSixteenElementsOn) {
  Graph small = Weights(WaveValues(15));
  EXPECT_EQ(MustApply(&small, "round_weights", "", "out").nodes_changed, 0);
  Graph large = Weights(WaveValues(16));
  EXPECT_EQ(MustApply(&large, "round_weights", "", "out").nodes_changed, 1);
}

TEST(RoundWeightsTest, LeavesFewDifferentValuesNearTheOldOnes) {
  const std::vector<float> wave = WaveValues(2000);
  Graph graph = Weights(wave);
  MustApply(&graph, "round_weights(num_steps=8)", "", "out");
  std::vector<float> values = FloatsOf(graph, "w");
  EXPECT_THAT(values, AllNear(wave, 2.0f / 8.0f / 2.0f + 1e-6f));
  std::sort(values.begin(), values.end());
  EXPECT_LE(std::unique(values.begin(), values.end()) - values.begin(), 9);
}

TEST(RoundWeightsTest, ClampsTheLargestValueIntoTheLastStep) {
  std::vector<float> ramp(17);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  Graph as_tensorflow = Weights(ramp);
  MustApply(&as_tensorflow, "round_weights(num_steps=4)", "", "out");
  EXPECT_EQ(FloatsOf(as_tensorflow, "w").back(), 18);
  Graph clamped = Weights(ramp);
  MustApply(&clamped, "round_weights(num_steps=4, clamp=true)", "", "out");
  std::vector<float> values = FloatsOf(clamped, "w");
  values.erase(std::unique(values.begin(), values.end()), values.end());
  EXPECT_THAT(values, ElementsAre(2, 6, 10, 14));
}

TEST(RoundWeightsTest, RefusesBadSteps) {
  for (const char* steps : {"0", "-1", "99999999999"}) {
    Graph graph = Weights(WaveValues(16));
    EXPECT_THAT(
        Apply(&graph, absl::StrCat("round_weights(num_steps=", steps, ")"), "",
              "out"),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("num_steps")));
  }
}

TEST(RoundWeightsTest, LeavesNaNAlone) {
  std::vector<float> values = WaveValues(16);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  Graph graph = Weights(values);
  const TransformReport report = MustApply(&graph, "round_weights", "", "out");
  EXPECT_EQ(report.nodes_changed, 0);
  EXPECT_EQ(report.warnings.size(), 1u);
}

}  // namespace
}  // namespace optfarm::transforms::testing
