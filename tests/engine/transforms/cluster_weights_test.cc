// cluster_weights: few values where the weights are.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "engine/transforms/quantizing/value_clusters.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As trained weights are: most of them small, some far away.
std::vector<float> BellShaped(int64_t count) {
  const std::vector<float> uniform = RandomValues(4 * count, 1);
  std::vector<float> values;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    float sum = 0;
    for (size_t k = 0; k < 4; ++k) sum += uniform[4 * i + k];
    values.push_back(sum * sum * sum / 64);
  }
  return values;
}

Graph Weights(const std::vector<float>& values) {
  GraphBuilder b;
  b.Floats("w", {static_cast<int64_t>(values.size())}, values);
  b.Node("out", "Softplus", {"w"}, FloatT());
  return b.Build();
}

std::vector<float> After(const std::string& transform,
                         const std::vector<float>& values) {
  Graph graph = Weights(values);
  MustApply(&graph, transform, "", "out");
  return FloatsOf(graph, "w");
}

double SquaredError(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0;
  for (size_t i = 0; i < a.size(); ++i) error += std::pow(a[i] - b[i], 2);
  return error;
}

TEST(ClusterWeightsTest, ErrsLessThanRoundingToAsManySteps) {
  const std::vector<std::pair<std::string, std::vector<float>>> cases = {
      {"bell", BellShaped(5000)},
      {"uniform", RandomValues(5000, 2)},
      {"one side", [] {
         std::vector<float> values = BellShaped(3000);
         for (float& value : values) value = std::abs(value) + 1;
         return values;
       }()}};
  for (const auto& [name, values] : cases) {
    for (const int steps : {2, 16, 64, 256}) {
      SCOPED_TRACE(absl::StrCat(name, " ", steps));
      const std::vector<float> clustered = After(
          absl::StrCat("cluster_weights(num_clusters=", steps, ")"), values);
      const std::vector<float> rounded =
          After(absl::StrCat("round_weights(num_steps=", steps, ")"), values);
      EXPECT_LE(std::set<float>(clustered.begin(), clustered.end()).size(),
                static_cast<size_t>(steps));
      const double error = SquaredError(values, clustered);
      EXPECT_LT(error, SquaredError(values, rounded));
      // Far away values cost rounding most of its steps.
      if (name == "bell" && steps > 2) {
        EXPECT_LT(error, 0.4 * SquaredError(values, rounded));
      }
    }
  }
}

TEST(ClusterWeightsTest, OutliersLeaveTheOthersTheirClusters) {
  for (const std::vector<float>& outliers :
       {std::vector<float>{1e30f}, std::vector<float>{-1e30f, 3e38f},
        std::vector<float>{2e20f, 1e30f, 1.1e30f}}) {
    std::vector<float> values = BellShaped(2048);
    std::copy(outliers.begin(), outliers.end(), values.begin() + 100);
    for (const int steps : {16, 64}) {
      SCOPED_TRACE(absl::StrCat(outliers.back(), " ", steps));
      const std::vector<float> after = After(
          absl::StrCat("cluster_weights(num_clusters=", steps, ")"), values);
      EXPECT_LE(SquaredError(values, after),
                SquaredError(
                    values,
                    After(absl::StrCat("round_weights(num_steps=", steps, ")"),
                          values)));
      const std::vector<float> clusters = FindClusters(values, steps);
      EXPECT_EQ(clusters.size(), static_cast<size_t>(steps));
      EXPECT_EQ(std::adjacent_find(clusters.begin(), clusters.end(),
                                   std::greater_equal<>()),
                clusters.end());
      // Each outlier costs the others no more than its own cluster.
      double error = 0, size = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        if (std::abs(values[i]) > 1e10f) continue;
        error += std::pow(values[i] - after[i], 2);
        size += std::pow(values[i], 2);
      }
      EXPECT_LT(error, 0.05 * size);
    }
  }
}

TEST(ClusterWeightsTest, FindsClustersThatAreThere) {
  std::vector<float> values;
  for (int i = 0; i < 300; ++i) {
    values.push_back(static_cast<float>(i % 3) + 0.001f * (i % 7 - 3));
  }
  const std::vector<float> after =
      After("cluster_weights(num_clusters=3, minimum_size=1)", values);
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], i % 3, 0.001);
  }
  EXPECT_EQ(std::set<float>(after.begin(), after.end()).size(), 3u);
}

TEST(ClusterWeightsTest, KeepsValuesThatAreFewAlready) {
  std::vector<float> values(2000, 0.0f);
  values[7] = -3.5f;
  values[8] = 1e30f;
  EXPECT_EQ(After("cluster_weights(num_clusters=3)", values), values);
}

TEST(ClusterWeightsTest, ChangesNoSmallExcludedOrBadConstant) {
  std::vector<float> values = BellShaped(1023);
  EXPECT_EQ(After("cluster_weights", values), values);
  EXPECT_EQ(After("cluster_weights(minimum_size=1, exclude_node=w)", values),
            values);
  values[3] = std::numeric_limits<float>::infinity();
  Graph graph = Weights(values);
  EXPECT_THAT(
      Skipped(MustApply(&graph, "cluster_weights(minimum_size=1)", "", "out")),
      ElementsAre("w: it holds NaN or infinite values"));
  EXPECT_EQ(FloatsOf(graph, "w"), values);
}

TEST(ClusterWeightsTest, RefusesNumbersOfClustersOutOfRange) {
  for (const char* count : {"1", "65537"}) {
    Graph graph = Weights({1, 2});
    EXPECT_THAT(
        Apply(&graph, absl::StrCat("cluster_weights(num_clusters=", count, ")"),
              "", "out")
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("not within 2 and 65536")));
  }
}

}  // namespace
}  // namespace optfarm::transforms::testing
