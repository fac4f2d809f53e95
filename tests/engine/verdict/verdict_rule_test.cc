// The verdict as a table of situations.

#include "engine/verdict/verdict_rule.h"

#include <gtest/gtest.h>

#include <limits>

namespace optfarm::verdict {
namespace {

using Answer = v1::ShippingVerdict;

// Smaller, faster, as accurate, quiet: what everybody hopes for.
VerdictFacts GoodFacts() {
  VerdictFacts facts;
  facts.size_ratio = 0.26;
  facts.speedup = 1.8;
  facts.speed_difference_is_clear = true;
  facts.top1_change = -0.3;
  facts.agreement = 0.97;
  return facts;
}

TEST(VerdictTest, SmallerFasterAndAsAccurateIsYes) {
  const Verdict verdict = DecideVerdict(GoodFacts());
  EXPECT_EQ(verdict.answer, Answer::YES);
  EXPECT_EQ(verdict.text, "yes: 0.26x size, 1.80x faster, -0.3 points");
}

TEST(VerdictTest, TheOriginalIsTheBaseline) {
  VerdictFacts facts = GoodFacts();
  facts.baseline = true;
  EXPECT_EQ(DecideVerdict(facts).text, "baseline");
}

TEST(VerdictTest, FailedGateIsNoHoweverFastItIs) {
  VerdictFacts facts = GoodFacts();
  facts.top1_change = -12.3;
  facts.failed_gates = {{"max_accuracy_drop", 12.3, 2.0, "lost too much"}};
  const Verdict verdict = DecideVerdict(facts);
  EXPECT_EQ(verdict.answer, Answer::NO);
  EXPECT_EQ(verdict.text, "no: loses 12.3 points of top-1 (bound 2.0)");
}

TEST(VerdictTest, EveryFailedGateIsNamed) {
  VerdictFacts facts = GoodFacts();
  facts.failed_gates = {{"min_top1_agreement", 0.62, 0.95, ""},
                        {"max_size_ratio", 0.45, 0.3, ""}};
  EXPECT_EQ(DecideVerdict(facts).text,
            "no: only 62.0% of the answers are the same (bound 95.0%); "
            "file is 0.45x the float size (bound 0.30x)");
}

TEST(VerdictTest, ClearlySlowerIsNoEvenWhenNoisy) {
  VerdictFacts facts = GoodFacts();
  facts.speedup = 1 / 1.6;
  facts.noise_reasons = {"spread 14 % of the median"};
  const Verdict verdict = DecideVerdict(facts);
  EXPECT_EQ(verdict.answer, Answer::NO);
  EXPECT_EQ(verdict.text, "no: 1.60x slower than float here");
}

TEST(VerdictTest, NoisyIsUnclear) {
  VerdictFacts facts = GoodFacts();
  facts.noise_reasons = {"spread 14 % of the median.", "another"};
  const Verdict verdict = DecideVerdict(facts);
  EXPECT_EQ(verdict.answer, Answer::UNCLEAR);
  EXPECT_EQ(verdict.text,
            "unclear: noisy (spread 14 % of the median); "
            "0.26x size, 1.80x faster, -0.3 points");
}

TEST(VerdictTest, NoiseIsNoMatterWhereTheWholeIntervalGivesOneAnswer) {
  VerdictFacts facts = GoodFacts();
  facts.noise_reasons = {"spread 14 % of the median."};
  facts.speedup = 2.1;
  facts.speedup_low = 1.9;
  facts.speedup_high = 2.2;
  EXPECT_EQ(DecideVerdict(facts).text,
            "yes: 0.26x size, 2.10x faster (1.90x to 2.20x), -0.3 points");
  // At the lower end it would be slower than float.
  facts.speedup_low = 0.8;
  EXPECT_EQ(DecideVerdict(facts).answer, Answer::UNCLEAR);
  // Not smaller, so that speed alone decides.
  facts.size_ratio = 1;
  facts.speedup_low = 1.01;
  EXPECT_EQ(DecideVerdict(facts).answer, Answer::UNCLEAR);
  facts.speedup_low = 1.2;
  EXPECT_EQ(DecideVerdict(facts).answer, Answer::YES);
}

TEST(VerdictTest, SlowerWithItsWholeIntervalIsNo) {
  VerdictFacts facts = GoodFacts();
  facts.speedup = 0.5;
  facts.speedup_low = 0.4;
  facts.speedup_high = 0.625;
  EXPECT_EQ(DecideVerdict(facts).text,
            "no: 2.00x slower (1.60x to 2.50x) than float here");
  facts.speedup_high = 1.1;
  EXPECT_NE(DecideVerdict(facts).answer, Answer::NO);
}

TEST(VerdictTest, AnswersOfAnOriginalThatIsNotTrustedAreUnclear) {
  VerdictFacts facts = GoodFacts();
  facts.distrust = {"It answers class 3 for all samples."};
  const Verdict verdict = DecideVerdict(facts);
  EXPECT_EQ(verdict.answer, Answer::UNCLEAR);
  EXPECT_EQ(verdict.text,
            "unclear: not to be trusted (It answers class 3 for all samples); "
            "0.26x size, 1.80x faster, -0.3 points");
}

TEST(VerdictTest, FailedGateHasDigitsEnoughToDifferFromItsBound) {
  EXPECT_EQ(DescribeFailedGate({"min_top1_agreement", 0.98, 1.0, ""}),
            "only 98.0% of the answers are the same (bound 100.0%)");
  EXPECT_EQ(DescribeFailedGate({"min_top1_agreement", 0.9999, 1.0, ""}),
            "only 99.99% of the answers are the same (bound 100.00%)");
  EXPECT_EQ(DescribeFailedGate({"max_accuracy_drop", 2.04, 2.0, ""}),
            "loses 2.04 points of top-1 (bound 2.00)");
  EXPECT_EQ(DescribeFailedGate({"min_speedup", 1.4996, 1.5, ""}),
            "only 1.4996x the speed of float (bound 1.5000x)");
}

TEST(VerdictTest, AsSlowWithinTheNoiseAndSmallerIsYes) {
  VerdictFacts facts = GoodFacts();
  facts.speedup = 0.97;
  facts.speed_difference_is_clear = false;
  EXPECT_EQ(DecideVerdict(facts).text,
            "yes: 0.26x size, same speed, -0.3 points");
}

TEST(VerdictTest, NeitherSmallerNorFasterIsNo) {
  VerdictFacts facts = GoodFacts();
  facts.speedup = 1.01;
  facts.size_ratio = 1.0;
  EXPECT_EQ(DecideVerdict(facts).text,
            "no: neither smaller nor faster than float");
}

TEST(VerdictTest, LossWithoutABoundIsStillNo) {
  VerdictFacts facts = GoodFacts();
  facts.top1_change = -7.25;
  EXPECT_EQ(DecideVerdict(facts).text, "no: loses 7.2 points of top-1");
  facts.accuracy_bound_held = true;
  EXPECT_EQ(DecideVerdict(facts).answer, Answer::YES);
}

TEST(VerdictTest, AgreementStandsInForAccuracyWithoutLabels) {
  VerdictFacts facts = GoodFacts();
  facts.top1_change.reset();
  EXPECT_EQ(DecideVerdict(facts).text,
            "yes: 0.26x size, 1.80x faster, 97.0% same answers");
  facts.agreement = 0.4;
  EXPECT_EQ(DecideVerdict(facts).text,
            "no: only 40.0% of the answers are the same");
}

TEST(VerdictTest, NothingMeasuredIsUnclear) {
  VerdictFacts facts = GoodFacts();
  facts.speedup.reset();
  EXPECT_EQ(DecideVerdict(facts).text,
            "unclear: speed not measured; 0.26x size, -0.3 points");
}

TEST(VerdictTest, NothingComparedIsUnclear) {
  VerdictFacts facts = GoodFacts();
  facts.top1_change.reset();
  facts.agreement.reset();
  EXPECT_EQ(DecideVerdict(facts).text,
            "unclear: answers not compared; 0.26x size, 1.80x faster");
}

TEST(VerdictTest, GateThatCouldNotBeCheckedSaysWhy) {
  EXPECT_EQ(DescribeFailedGate({"max_accuracy_drop",
                                std::numeric_limits<double>::quiet_NaN(), 2.0,
                                "no labels; give --labels"}),
            "max_accuracy_drop could not be checked: no labels; give --labels");
}

TEST(VerdictTest, AccuracyGainIsShownWithItsSign) {
  VerdictFacts facts = GoodFacts();
  facts.top1_change = 0.5;
  EXPECT_EQ(DecideVerdict(facts).text,
            "yes: 0.26x size, 1.80x faster, +0.5 points");
  facts.top1_change = -0.01;
  EXPECT_EQ(DecideVerdict(facts).text,
            "yes: 0.26x size, 1.80x faster, same top-1");
}

}  // namespace
}  // namespace optfarm::verdict
