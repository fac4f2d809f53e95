// Rounds say what they measured and whether it was disturbed.

#include "tests/bench/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace optfarm::bench {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kBest = 16;

Turn Quiet(double milliseconds) { return {{3}, milliseconds, 15.9, 0.01}; }
Turn Shared(double milliseconds) { return {{1}, milliseconds, 9, 0.01}; }
Turn Beside(double milliseconds) { return {{1}, milliseconds, 15.9, 0.2}; }
Turn Unpinned(double milliseconds) { return {{}, milliseconds, 0, 0}; }

TEST(RoundsTest, ATurnIsDisturbedByASharedCoreAndByOtherProcesses) {
  EXPECT_TRUE(IsUndisturbed(Quiet(1), kBest));
  EXPECT_FALSE(IsUndisturbed(Shared(1), kBest));
  EXPECT_TRUE(IsShared(Shared(1), kBest));
  EXPECT_FALSE(IsUndisturbed(Beside(1), kBest));
  EXPECT_FALSE(IsShared(Beside(1), kBest));
  EXPECT_FALSE(IsUndisturbed(Unpinned(1), kBest));
  // A better rate, once seen, judges those before it.
  EXPECT_FALSE(IsUndisturbed(Quiet(1), 20));
}

TEST(RoundsTest, ARoundIsUndisturbedWhenAllLastTurnsAre) {
  EXPECT_TRUE(IsUndisturbed(Round{{{Quiet(1)}, {Quiet(2)}}}, kBest));
  EXPECT_TRUE(IsUndisturbed(Round{{{Shared(9), Quiet(1)}, {Quiet(2)}}}, kBest));
  EXPECT_FALSE(IsUndisturbed(Round{{{Quiet(1)}, {Shared(2)}}}, kBest));
}

TEST(RoundsTest, TakesRoundsUntilEnoughAreUndisturbed) {
  const RoundLimits limits{2, 4};
  std::vector<Round> rounds;
  EXPECT_TRUE(WantsMore(rounds, kBest, limits));
  rounds.push_back({{{Quiet(1)}}});
  rounds.push_back({{{Shared(1)}}});
  EXPECT_TRUE(WantsMore(rounds, kBest, limits));
  rounds.push_back({{{Shared(1)}}});
  EXPECT_TRUE(WantsMore(rounds, kBest, limits));
  std::vector<Round> enough = rounds;
  enough.push_back({{{Quiet(1)}}});
  EXPECT_FALSE(WantsMore(enough, kBest, limits));
  rounds.push_back({{{Shared(1)}}});
  EXPECT_FALSE(WantsMore(rounds, kBest, limits));
}

TEST(RoundsTest, TakesSoManyRoundsWhereNothingIsProbed) {
  std::vector<Round> rounds;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(WantsMore(rounds, 0, {3, 0}));
    rounds.push_back({{{Unpinned(1)}}});
  }
  EXPECT_FALSE(WantsMore(rounds, 0, {3, 0}));
}

TEST(RoundsTest, RefusesFewerRoundsThanWanted) {
  EXPECT_TRUE(CheckLimits({7, 0}).ok());
  EXPECT_EQ((RoundLimits{7, 0}).Most(), 28);
  EXPECT_TRUE(CheckLimits({7, 7}).ok());
  EXPECT_THAT(CheckLimits({7, 3}), StatusIs(absl::StatusCode::kInvalidArgument,
                                            AllOf(HasSubstr("--most_rounds 3"),
                                                  HasSubstr("--rounds 7"))));
}

TEST(RoundsTest, SummarizesLastTurnsOfUndisturbedRoundsAndFirstTurnsOfAll) {
  const std::vector<Round> rounds = {
      {{{Quiet(9)}, {Quiet(10)}}},
      {{{Shared(20), Quiet(8)}, {Quiet(10)}}},
      {{{Quiet(9)}, {Shared(30)}}},
  };
  const SummaryPair ours = SummarizeTimes(rounds, kBest, 0);
  EXPECT_EQ(ours.undisturbed_count, 2);
  EXPECT_EQ(ours.count, 3);
  EXPECT_DOUBLE_EQ(ours.undisturbed.max, 9);
  EXPECT_DOUBLE_EQ(ours.all.max, 20);
  const SummaryPair ratios = SummarizeRatios(rounds, kBest, 1);
  EXPECT_DOUBLE_EQ(ratios.undisturbed.median, 0.85);
  EXPECT_DOUBLE_EQ(ratios.undisturbed.min, 0.8);
  EXPECT_DOUBLE_EQ(ratios.all.median, 0.9);
  EXPECT_DOUBLE_EQ(ratios.all.min, 0.3);
  EXPECT_DOUBLE_EQ(ratios.all.max, 2);
  EXPECT_EQ(DescribeRatios(ratios),
            "0.850 (0.800 .. 0.900), all rounds 0.900 (0.300 .. 2.000)");
}

TEST(RoundsTest, SaysOnceWhatAllRoundsSay) {
  const std::vector<Round> quiet = {{{{Quiet(9)}, {Quiet(10)}}}};
  EXPECT_EQ(DescribeRatios(SummarizeRatios(quiet, kBest, 1)),
            "0.900 (0.900 .. 0.900)");
  const std::vector<Round> disturbed = {{{{Shared(9)}, {Quiet(10)}}}};
  EXPECT_EQ(DescribeRatios(SummarizeRatios(disturbed, kBest, 1)),
            "0.900 (0.900 .. 0.900)");
}

TEST(RoundsTest, TellsWhatDisturbed) {
  const std::vector<Round> rounds = {
      {{{Shared(20), Quiet(8)}, {Quiet(10)}}},
      {{{Beside(9)}, {Quiet(10)}}},
  };
  EXPECT_EQ(DescribeRounds(rounds, kBest),
            "1 of 2 rounds undisturbed; of 5 turns 1 shared a core, 1 ran "
            "beside other processes; best rate 16.00; on processors 1 (2), 3 "
            "(3)");
  const std::vector<Round> unpinned = {{{{Unpinned(1)}}}, {{{Unpinned(1)}}}};
  EXPECT_EQ(DescribeRounds(unpinned, kBest),
            "2 rounds, not pinned and not probed");
}

}  // namespace
}  // namespace optfarm::bench
