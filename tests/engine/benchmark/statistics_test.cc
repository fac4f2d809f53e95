#include "engine/benchmark/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace optfarm::benchmark {
namespace {

TEST(StatisticsTest, NoValuesGiveZeros) {
  const Summary summary = Summarize({});
  EXPECT_EQ(summary.median, 0);
  EXPECT_EQ(summary.p99, 0);
}

TEST(StatisticsTest, OneValueIsEverything) {
  const Summary summary = Summarize({7.0});
  EXPECT_EQ(summary.min, 7);
  EXPECT_EQ(summary.median, 7);
  EXPECT_EQ(summary.mad, 0);
  EXPECT_EQ(summary.p99, 7);
}

TEST(StatisticsTest, SummarizesInAnyOrder) {
  const Summary summary = Summarize({5.0, 1.0, 4.0, 2.0, 3.0, 100.0});
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 100);
  EXPECT_DOUBLE_EQ(summary.median, 3.5);
  EXPECT_DOUBLE_EQ(summary.mean, 115.0 / 6);
  // Deviations 1.5 2.5 0.5 1.5 0.5 96.5.
  EXPECT_DOUBLE_EQ(summary.mad, 1.5);
  // Position 4.5 between 5 and 100.
  EXPECT_DOUBLE_EQ(summary.p90, 52.5);
}

TEST(StatisticsTest, QuantilesAreBetweenNeighbours) {
  const std::vector<double> sorted = {0, 10, 20, 30};
  EXPECT_DOUBLE_EQ(Quantile(sorted, 0), 0);
  EXPECT_DOUBLE_EQ(Quantile(sorted, 1), 30);
  EXPECT_DOUBLE_EQ(Quantile(sorted, 0.25), 7.5);
}

}  // namespace
}  // namespace optfarm::benchmark
