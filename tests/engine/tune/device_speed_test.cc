#include "engine/tune/device_speed.h"

#include <gtest/gtest.h>

namespace optfarm::tune {
namespace {

TEST(FloatCostModelTest, GoesThroughWhatWasMeasured) {
  FloatCostModel model(100, 300, 150);
  EXPECT_DOUBLE_EQ(model.Predict(0), 100);
  EXPECT_DOUBLE_EQ(model.Predict(150), 400);
  // A quarter of the way that cost more than its share.
  model.Learn(40, 220);
  EXPECT_GT(model.Predict(40), 180);
  EXPECT_LT(model.Predict(40), 220);
}

TEST(FloatCostModelTest, TrustsSumsUntilLargerOnesAreMeasured) {
  // Float costs next to nothing in all, which tells nothing of the parts.
  FloatCostModel model(100, -2, 1, 50);
  EXPECT_NEAR(model.Predict(20), 120, 1);
  model.Learn(200, 100 + 2 * 200);
  EXPECT_GT(model.Predict(20), 135);
}

TEST(FloatCostModelTest, FloatMayBeFasterThanEightBits) {
  const FloatCostModel model(100, -60, 150);
  EXPECT_DOUBLE_EQ(model.Predict(75), 70);
}

TEST(PredictionTest, ErrorsAndRanksNeedThreePairs) {
  EXPECT_FALSE(MedianError({{1, 1}, {2, 2}}).has_value());
  EXPECT_FALSE(RankCorrelation({{1, 1}, {2, 2}}).has_value());
  EXPECT_NEAR(*MedianError({{11, 10}, {10, 10}, {5, 10}}), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(*RankCorrelation({{1, 10}, {2, 20}, {3, 21}}), 1);
  EXPECT_DOUBLE_EQ(*RankCorrelation({{1, 3}, {2, 2}, {3, 1}}), -1);
  EXPECT_FALSE(RankCorrelation({{1, 3}, {1, 2}, {1, 1}}).has_value());
}

TEST(SpeedOnTest, NeedsTheOriginalAndTheVariant) {
  v1::Job job;
  EXPECT_FALSE(SpeedOn(job, {"pi4", 1}).has_value());
  v1::Measurement& original = *job.add_measurements();
  original.set_device("pi4");
  original.set_variant("float");
  original.set_threads(1);
  original.set_median_us(500);
  v1::ShippingVerdict& verdict = *job.add_verdicts();
  verdict.set_device("pi4");
  verdict.set_variant("int8");
  verdict.set_threads(1);
  EXPECT_FALSE(SpeedOn(job, {"pi4", 1}).has_value());
  verdict.set_speedup(2);
  ASSERT_TRUE(SpeedOn(job, {"pi4", 1}).has_value());
  EXPECT_EQ(SpeedOn(job, {"pi4", 1})->float_us, 500);
  EXPECT_EQ(SpeedOn(job, {"pi4", 1})->low, 2);
  EXPECT_FALSE(SpeedOn(job, {"pi5", 1}).has_value());
  EXPECT_FALSE(SpeedOn(job, {"pi4", 4}).has_value());
}

}  // namespace
}  // namespace optfarm::tune
