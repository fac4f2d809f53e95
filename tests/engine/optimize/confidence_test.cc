#include "engine/optimize/judging/confidence.h"

#include <gtest/gtest.h>

namespace optfarm::optimize {
namespace {

TEST(ConfidenceTest, WilsonIntervalOfKnownExamples) {
  // Newcombe 1998, table 1: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
  EXPECT_NEAR(WilsonInterval(81, 263).low, 0.2553, 5e-5);
  EXPECT_NEAR(WilsonInterval(81, 263).high, 0.3662, 5e-5);
  EXPECT_NEAR(WilsonInterval(15, 148).low, 0.0624, 5e-5);
  EXPECT_NEAR(WilsonInterval(15, 148).high, 0.1605, 5e-5);
  EXPECT_EQ(WilsonInterval(0, 20).low, 0);
  EXPECT_NEAR(WilsonInterval(0, 20).high, 0.1611, 5e-5);
  EXPECT_NEAR(WilsonInterval(1, 29).high, 0.1718, 5e-5);
}

TEST(ConfidenceTest, NothingSeenSaysNothing) {
  EXPECT_EQ(WilsonInterval(0, 0).low, 0);
  EXPECT_EQ(WilsonInterval(0, 0).high, 1);
  EXPECT_EQ(PairedInterval({0, 0, 0}).low, -1);
  EXPECT_EQ(PairedInterval({0, 0, 0}).high, 1);
  EXPECT_EQ(McNemarProbability({0, 0, 0}), 1);
}

TEST(ConfidenceTest, PairedIntervalIsAboutTheDifferenceAlone) {
  // What both get right, or wrong, tells nothing of who is better.
  const Interval interval = PairedInterval({300, 12, 9});
  EXPECT_LT(interval.low, -0.01);
  EXPECT_GT(interval.high, -0.01);
  EXPECT_NEAR(interval.high - interval.low, 2 * 1.96 * 4.69 / 302, 1e-3);
  const Interval turned = PairedInterval({300, 9, 12});
  EXPECT_NEAR(turned.low, -interval.high, 1e-12);
  EXPECT_NEAR(turned.high, -interval.low, 1e-12);
}

TEST(ConfidenceTest, NoDifferenceIsNotCertainty) {
  const Interval interval = PairedInterval({20, 0, 0});
  EXPECT_LT(interval.low, -0.05);
  EXPECT_GT(interval.high, 0.05);
}

TEST(ConfidenceTest, McNemarCountsTheCoins) {
  // Both tails of ten coins with at most one head: 2 * 11 / 1024.
  EXPECT_NEAR(McNemarProbability({50, 9, 1}), 22.0 / 1024, 1e-12);
  EXPECT_EQ(McNemarProbability({50, 5, 5}), 1);
  EXPECT_NEAR(McNemarProbability({9, 0, 5}), 2.0 / 32, 1e-12);
}

}  // namespace
}  // namespace optfarm::optimize
