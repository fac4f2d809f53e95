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

TEST(StatisticsTest, MedianIntervalComesFromTheOrder) {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  // 50 -+ 1.96 * 5: the 40th and the 61st.
  Summary summary = Summarize(values);
  EXPECT_EQ(summary.median_low, 40);
  EXPECT_EQ(summary.median_high, 61);
  EXPECT_DOUBLE_EQ(MedianPrecision(summary), 21.0 / (2 * 50.5));
  summary = Summarize({3.0, 1.0, 2.0});
  EXPECT_EQ(summary.median_low, 1);
  EXPECT_EQ(summary.median_high, 3);
  EXPECT_EQ(MedianPrecision(Summary()), 0);
}

TEST(StatisticsTest, OutliersAreCountedAndKept) {
  std::vector<double> values = {10, 11, 9, 10, 12, 8, 10, 11, 9};
  EXPECT_EQ(Summarize(values).outliers, 0);
  values.push_back(100);
  values.push_back(1);
  const Summary summary = Summarize(values);
  EXPECT_EQ(summary.outliers, 2);
  EXPECT_EQ(summary.max, 100);
}

}  // namespace
}  // namespace optfarm::benchmark
