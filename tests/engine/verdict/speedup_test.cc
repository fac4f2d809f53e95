#include "engine/verdict/speedup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace optfarm::verdict {
namespace {

v1::Measurement Runs(double median, const std::vector<float>& samples = {}) {
  v1::Measurement measurement;
  measurement.set_median_us(median);
  measurement.mutable_samples_us()->Assign(samples.begin(), samples.end());
  return measurement;
}

// `factor` times 100 runs around 100, the second half `drift` times as long.
v1::Measurement Drifting(double factor, double drift, int count = 100) {
  std::vector<float> samples;
  for (int i = 0; i < count; ++i) {
    const double late = i < count / 2 ? 1 : drift;
    samples.push_back(static_cast<float>(factor * late * (100 + (i * 7) % 5)));
  }
  return Runs(factor * 102, samples);
}

TEST(SpeedupTest, DriftThatHitsBothLeavesTheIntervalNarrow) {
  const auto found = FindSpeedup(Drifting(2, 1.5), Drifting(1, 1.5));
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(found->ratio, 2);
  EXPECT_NEAR(found->low, 2, 1e-6);
  EXPECT_NEAR(found->high, 2, 1e-6);
}

TEST(SpeedupTest, DriftOfOneAloneMakesItWide) {
  const auto found = FindSpeedup(Drifting(2, 1.5), Drifting(1, 1));
  ASSERT_TRUE(found.has_value());
  EXPECT_LE(found->low, 2.2);
  EXPECT_GE(found->high, 2.7);
}

// Logs of the ratios are 0 and ln 4 in turn: mean ln 2, deviation of ten
// values 0.7306, half of the interval 2.262 * 0.7306 / sqrt(10) = 0.5226.
TEST(SpeedupTest, IntervalIsStudentsOverTheParts) {
  std::vector<float> original;
  for (int part = 0; part < 10; ++part) {
    original.insert(original.end(), 5, part % 2 == 0 ? 100.0f : 400.0f);
  }
  const auto found =
      FindSpeedup(Runs(200, original), Runs(100, std::vector<float>(50, 100)));
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->low, 2 * std::exp(-0.5226), 1e-3);
  EXPECT_NEAR(found->high, 2 * std::exp(0.5226), 1e-3);
}

TEST(SpeedupTest, FewRunsHaveTheIntervalsOfTheMedians) {
  v1::Measurement original = Runs(200), variant = Runs(100);
  original.set_median_low_us(180);
  original.set_median_high_us(220);
  variant.set_median_low_us(90);
  variant.set_median_high_us(120);
  const auto found = FindSpeedup(original, variant);
  ASSERT_TRUE(found.has_value());
  EXPECT_DOUBLE_EQ(found->low, 1.5);
  EXPECT_DOUBLE_EQ(found->high, 220.0 / 90);
  EXPECT_EQ(FindSpeedup(Runs(200), Runs(100))->low, 0);
}

TEST(SpeedupTest, NothingWithoutMedians) {
  EXPECT_FALSE(FindSpeedup(Runs(0), Runs(100)).has_value());
  EXPECT_FALSE(FindSpeedup(Runs(100), Runs(0)).has_value());
}

TEST(SpeedupTest, RunsThatNoClockShowsGiveNoInterval) {
  const auto found = FindSpeedup(Runs(200, std::vector<float>(50, 200)),
                                 Runs(100, std::vector<float>(50, 0)));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->low, 0);
}

}  // namespace
}  // namespace optfarm::verdict
