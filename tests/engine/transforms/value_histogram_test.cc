#include "engine/transforms/quantizing/value_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace optfarm::transforms {
namespace {

constexpr int kBins = ValueHistogram::kBins;

std::vector<int64_t> Counts(const ValueHistogram& histogram) {
  std::vector<int64_t> counts;
  for (int i = -kBins; i < kBins; ++i) counts.push_back(histogram.count(i));
  return counts;
}

// Numbers of very different magnitudes.
std::vector<float> Numbers(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    const int sign = i % 3 == 0 ? -1 : 1;
    values.push_back(static_cast<float>(
        sign * std::ldexp(1.0 + i * 37 % 101 / 101.0, i * 29 % 23 - 14)));
  }
  return values;
}

TEST(ValueHistogramTest, CountsValuesInBinsWhoseWidthIsAPowerOfTwo) {
  ValueHistogram histogram;
  histogram.Add({1.0f, 0.0f, -0.5f, 1.999f, 0.0f});
  EXPECT_EQ(histogram.width(), 2.0 / kBins);
  EXPECT_EQ(histogram.count(kBins / 2), 1);
  // Bins below zero mirror those above.
  EXPECT_EQ(histogram.count(-1 - kBins / 4), 1);
  EXPECT_EQ(histogram.count(kBins - 3), 1);
  EXPECT_EQ(histogram.zeros(), 2);
  EXPECT_EQ(histogram.total(), 5);
  EXPECT_EQ(histogram.min(), -0.5f);
  EXPECT_EQ(histogram.max(), 1.999f);
}

TEST(ValueHistogramTest, IsTheSameInEveryOrder) {
  const std::vector<float> values = Numbers(500);
  ValueHistogram at_once, backwards, one_by_one;
  at_once.Add(values);
  backwards.Add(std::vector<float>(values.rbegin(), values.rend()));
  for (const float v : values) one_by_one.Add({v});
  EXPECT_EQ(Counts(backwards), Counts(at_once));
  EXPECT_EQ(Counts(one_by_one), Counts(at_once));
  EXPECT_EQ(one_by_one.width(), at_once.width());
}

TEST(ValueHistogramTest, IsTheSameFromParts) {
  const std::vector<float> values = Numbers(500);
  const auto few = absl::MakeConstSpan(values).subspan(0, 3);
  const auto rest = absl::MakeConstSpan(values).subspan(3);
  ValueHistogram all, forward, backward;
  all.Add(values);
  forward.Add(few);
  forward.Add(rest);
  backward.Add(rest);
  backward.Add(few);
  EXPECT_EQ(Counts(forward), Counts(all));
  EXPECT_EQ(Counts(backward), Counts(all));
  EXPECT_EQ(forward.total(), all.total());
  EXPECT_EQ(forward.min(), all.min());
  EXPECT_EQ(forward.max(), all.max());
}

TEST(ValueHistogramTest, TakesTheSmallestAndTheLargestFloat) {
  ValueHistogram histogram;
  histogram.Add({std::numeric_limits<float>::denorm_min(),
                 -std::numeric_limits<float>::denorm_min()});
  histogram.Add({std::numeric_limits<float>::max(),
                 std::numeric_limits<float>::lowest()});
  EXPECT_EQ(histogram.total(), 4);
  EXPECT_EQ(histogram.count(0), 1);
  EXPECT_EQ(histogram.count(-1), 1);
  EXPECT_EQ(histogram.count(kBins - 1), 1);
  EXPECT_EQ(histogram.count(-kBins), 1);
}

TEST(ValueHistogramTest, CountsBadValuesApart) {
  ValueHistogram histogram;
  histogram.Add({std::numeric_limits<float>::quiet_NaN(),
                 std::numeric_limits<float>::infinity(), 2.0f});
  EXPECT_EQ(histogram.bad(), 2);
  EXPECT_EQ(histogram.total(), 1);
  EXPECT_EQ(histogram.max(), 2.0f);
}

TEST(ValueHistogramTest, OfNothingOrZerosHasNoBins) {
  ValueHistogram histogram;
  histogram.Add({});
  EXPECT_EQ(histogram.max(), 0);
  histogram.Add({0.0f, -0.0f});
  EXPECT_EQ(histogram.zeros(), 2);
  EXPECT_EQ(histogram.count(0), 0);
  EXPECT_EQ(histogram.min(), 0);
}

}  // namespace
}  // namespace optfarm::transforms
