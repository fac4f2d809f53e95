#include "engine/transforms/quantizing/clipped_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

namespace optfarm::transforms {
namespace {

constexpr int kValues = 400000;

// Values whose distribution is known: the quantile function at equally spaced
// probabilities.
ValueHistogram Distribution(const std::function<double(double)>& quantile) {
  std::vector<float> values;
  for (int i = 0; i < kValues; ++i) {
    values.push_back(static_cast<float>(quantile((i + 0.5) / kValues)));
  }
  ValueHistogram histogram;
  histogram.Add(values);
  return histogram;
}

double Exponential(double p) { return -std::log1p(-p); }
double Laplace(double p) {
  return p < 0.5 ? std::log(2 * p) : -std::log(2 * (1 - p));
}
double Uniform(double p) { return p; }

// The error that quantized values really have, measured value by value.
double MeasuredError(const ObservedRange& range,
                     const std::function<double(double)>& quantile) {
  const double step = (static_cast<double>(range.max) - range.min) / 255;
  const double lowest = std::round(range.min / step);
  double sum = 0;
  for (int i = 0; i < kValues; ++i) {
    const double x = quantile((i + 0.5) / kValues);
    const double q =
        std::min(255.0, std::max(0.0, std::round(x / step) - lowest));
    const double error = x - (q + lowest) * step;
    sum += error * error;
  }
  return sum / kValues;
}

TEST(LeastErrorRangeTest, KeepsTheWholeOfAUniformDistribution) {
  const ObservedRange range = LeastErrorRange(Distribution(Uniform));
  EXPECT_EQ(range.min, 0);
  EXPECT_NEAR(range.max, 1, 0.002);
}

// exp(-x) = x / 780300 at the optimum for one side: x = 11.1.
TEST(LeastErrorRangeTest, CutsAnExponentialWhereTheTwoErrorsBalance) {
  const ObservedRange range = LeastErrorRange(Distribution(Exponential));
  EXPECT_EQ(range.min, 0);
  EXPECT_NEAR(range.max, 11.1, 0.4);
}

// exp(-x) = x / 195075 at the optimum for two sides: x = 9.9.
TEST(LeastErrorRangeTest, CutsALaplaceDistributionOnBothSides) {
  const ObservedRange range = LeastErrorRange(Distribution(Laplace));
  EXPECT_NEAR(range.max, 9.9, 0.4);
  EXPECT_NEAR(range.min, -9.9, 0.4);
}

TEST(LeastErrorRangeTest, PredictsWhatIsMeasured) {
  const ValueHistogram histogram = Distribution(Laplace);
  const ObservedRange range = LeastErrorRange(histogram);
  const double measured = MeasuredError(range, Laplace);
  EXPECT_NEAR(ExpectedError(histogram, range.min, range.max) / measured, 1,
              0.03);
  EXPECT_LT(measured,
            MeasuredError({histogram.min(), histogram.max()}, Laplace));
  EXPECT_LT(measured, MeasuredError({-7, 7}, Laplace));
}

// For values in 0..1 and one outlier at 20 among n, the end a balances
// a / 780300 = (20 - a) / n: 13.2.
TEST(LeastErrorRangeTest, CutsAnOutlierAsFarAsItPays) {
  std::vector<float> values;
  for (int i = 0; i < kValues; ++i) {
    values.push_back(static_cast<float>(i) / kValues);
  }
  values.push_back(20);
  ValueHistogram histogram;
  histogram.Add(values);
  EXPECT_NEAR(LeastErrorRange(histogram).max, 13.2, 0.2);
}

TEST(LeastDivergenceRangeTest, KeepsTheWholeOfAUniformDistribution) {
  const ObservedRange range = LeastDivergenceRange(Distribution(Uniform));
  EXPECT_EQ(range.min, 0);
  EXPECT_NEAR(range.max, 1, 0.01);
}

// Formula 39 bin by bin, for values above zero and an end in bins.
double Divergence(const ValueHistogram& histogram, int bins, int end) {
  double total = 0, inside = 0;
  std::vector<double> sums(256, 0), used(256, 0);
  const auto code_of = [end](int i) {
    return static_cast<size_t>(std::floor((i + 0.5) * 255 / end + 0.5));
  };
  for (int i = 0; i < bins; ++i) {
    const auto count = static_cast<double>(histogram.count(i));
    total += count;
    if (i >= end) continue;
    inside += count;
    sums[code_of(i)] += count;
    used[code_of(i)] += count > 0;
  }
  double divergence = 0;
  for (int i = 0; i < end; ++i) {
    const auto count = static_cast<double>(histogram.count(i));
    const double p = count + (i == end - 1 ? total - inside : 0);
    if (p == 0) continue;
    const double q = count > 0 ? sums[code_of(i)] / used[code_of(i)] : 1e-4;
    divergence += p / total * std::log(p / total / (q / inside));
  }
  return divergence;
}

// Most ends are given up before all quantized values were looked at.
TEST(LeastDivergenceRangeTest, IsTheLeastOfTheEndsThatAreTried) {
  for (const auto& quantile : {Exponential, Uniform}) {
    const ValueHistogram histogram = Distribution(quantile);
    const auto bins = static_cast<int>(histogram.max() / histogram.width()) + 1;
    const auto end = static_cast<int>(
        std::lround(LeastDivergenceRange(histogram).max / histogram.width()));
    const double least = Divergence(histogram, bins, end);
    for (int k = 16; k <= 128; k += 4) {
      EXPECT_LE(least,
                Divergence(histogram, bins, (bins * k + 127) / 128) + 1e-9)
          << k;
    }
  }
}

TEST(LeastDivergenceRangeTest, CutsALongTailButNotTheBody) {
  // One value in ten thousand lies far away.
  const ObservedRange range = LeastDivergenceRange(Distribution(
      [](double p) { return p < 0.9999 ? Exponential(p) : 100 * p; }));
  EXPECT_LT(range.max, 30);
  // 99.9 % of the values.
  EXPECT_GT(range.max, 6.9);
}

TEST(LeastDivergenceRangeTest, CutsBothSides) {
  const ObservedRange range = LeastDivergenceRange(Distribution(Laplace));
  EXPECT_LT(range.max, 12);
  EXPECT_GT(range.max, 6);
  EXPECT_GT(range.min, -12);
  EXPECT_LT(range.min, -6);
}

TEST(PercentileRangeTest, LeavesOutThatPartOnEachSide) {
  const ObservedRange range =
      PercentileRange(Distribution([](double p) { return 2 * p - 1; }), 1);
  EXPECT_NEAR(range.max, 0.98, 0.002);
  EXPECT_NEAR(range.min, -0.98, 0.002);
}

TEST(PercentileRangeTest, OfZeroPercentIsTheWholeRange) {
  const ValueHistogram histogram = Distribution(Laplace);
  const ObservedRange range = PercentileRange(histogram, 0);
  EXPECT_EQ(range.min, histogram.min());
  EXPECT_EQ(range.max, histogram.max());
}

TEST(ClippedRangeTest, IsEmptyWithoutValues) {
  ValueHistogram histogram;
  histogram.Add({0, 0});
  EXPECT_EQ(LeastErrorRange(histogram), (ObservedRange{0, 0}));
  EXPECT_EQ(LeastDivergenceRange(histogram), (ObservedRange{0, 0}));
  EXPECT_EQ(PercentileRange(histogram, 1), (ObservedRange{0, 0}));
}

TEST(ClippedRangeTest, IncludesZeroWhereValuesDoNot) {
  ValueHistogram histogram;
  histogram.Add({-3, -2.5f, -2});
  EXPECT_EQ(LeastErrorRange(histogram), (ObservedRange{-3, 0}));
  EXPECT_EQ(LeastDivergenceRange(histogram).max, 0);
}

}  // namespace
}  // namespace optfarm::transforms
