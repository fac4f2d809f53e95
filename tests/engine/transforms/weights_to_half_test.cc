#include <cmath>
#include <limits>

#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kToHalf[] = "weights_to_half(minimum_size=2)";

GraphBuilder Sum(const std::vector<float>& weights) {
  GraphBuilder b;
  const auto size = static_cast<int64_t>(weights.size());
  b.Placeholder("in", {size});
  b.Floats("w", {size}, weights);
  b.Node("out", "Add", {"in", "w"}, FloatT());
  return b;
}

TEST(WeightsToHalfTest, ValuesChangeByAtMostTwoToTheMinusEleven) {
  const std::vector<float> weights = {1.0f / 3.0f, -1000.1f, 65504.0f, 6e-5f};
  Graph graph = Sum(weights).Build();
  EXPECT_EQ(MustApply(&graph, kToHalf, "in", "out").nodes_changed, 1);
  EXPECT_EQ(Show(graph, "w"), "Cast(w_half_const)");
  const std::vector<float> after =
      testing::Run(graph, "in", Wave(runtime::Shape({4})), "w");
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(after[i], weights[i], std::abs(weights[i]) / 2048) << i;
  }
}

TEST(WeightsToHalfTest, WhatNoHalfCanBeStaysAsItIs) {
  for (const float bad :
       {65537.0f, -1e30f, std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    Graph graph = Sum({1.0f, bad}).Build();
    const TransformReport report = MustApply(&graph, kToHalf, "in", "out");
    EXPECT_EQ(report.nodes_changed, 0);
    ASSERT_EQ(report.skipped.size(), 1u);
    EXPECT_THAT(report.skipped[0].reason, HasSubstr("16-bit"));
  }
}

TEST(WeightsToHalfTest, SmallAndExcludedConstantsStay) {
  Graph graph = Sum({1.0f}).Build();
  EXPECT_EQ(MustApply(&graph, kToHalf, "in", "out").nodes_changed, 0);
  Graph other = Sum({1.0f, 2.0f}).Build();
  EXPECT_EQ(MustApply(&other, "weights_to_half(minimum_size=1, exclude_node=w)",
                      "in", "out")
                .nodes_changed,
            0);
}

}  // namespace
}  // namespace optfarm::transforms::testing
