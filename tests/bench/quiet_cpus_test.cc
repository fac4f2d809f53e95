// Rounds run on the quietest processors of the moment.

#include "tests/bench/quiet_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/status_matchers.h"

namespace optfarm::bench {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;

// Processors 2k and 2k + 1 are halves of one core, which is shared when both
// are probed at once.
class TwoHalves {
 public:
  std::map<int, CpuRate> alone;
  bool has_siblings = false;

  absl::StatusOr<std::vector<CpuRate>> operator()(
      absl::Span<const int> cpus) const {
    std::vector<CpuRate> rates;
    for (const int cpu : cpus) {
      CpuRate rate = alone.at(cpu);
      for (const int other : cpus) {
        if (!has_siblings || other == cpu || other / 2 != cpu / 2) continue;
        rate.rate /= 2;
        rate.own_rate /= 2;
      }
      rates.push_back(rate);
    }
    return rates;
  }
};

QuietCpus MakeCpus(const TwoHalves& machine, double quiet_rate = 0) {
  return QuietCpus({0, 1, 2, 3}, machine, quiet_rate);
}

TEST(QuietCpusTest, TakesTheQuietestInOrder) {
  const TwoHalves machine{
      {{0, {8, 8}}, {1, {15, 15}}, {2, {9, 9}}, {3, {16, 16}}}};
  QuietCpus cpus = MakeCpus(machine);
  const auto one = cpus.Choose(1);
  ASSERT_TRUE(one.ok());
  EXPECT_THAT(one->cpus, ElementsAre(3));
  const auto two = cpus.Choose(2);
  ASSERT_TRUE(two.ok());
  EXPECT_THAT(two->cpus, ElementsAre(1, 3));
  EXPECT_EQ(two->least.own_rate, 15);
  EXPECT_TRUE(cpus.IsQuiet(two->least.own_rate));
}

TEST(QuietCpusTest, FillsUpWithTheBestOfSharedOnes) {
  const TwoHalves machine{
      {{0, {8, 8}}, {1, {7, 7}}, {2, {10, 10}}, {3, {16, 16}}}};
  QuietCpus cpus = MakeCpus(machine);
  const auto chosen = cpus.Choose(2);
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(chosen->cpus, ElementsAre(2, 3));
  EXPECT_FALSE(cpus.IsQuiet(chosen->least.own_rate));
}

TEST(QuietCpusTest, LeavesOutTheOtherHalfOfAChosenCore) {
  const TwoHalves machine{
      {{0, {16, 16}}, {1, {16, 16}}, {2, {15, 15}}, {3, {15, 15}}}, true};
  QuietCpus cpus = MakeCpus(machine);
  const auto two = cpus.Choose(2);
  ASSERT_TRUE(two.ok());
  EXPECT_THAT(two->cpus, ElementsAre(0, 2));
  EXPECT_TRUE(cpus.IsQuiet(two->least.own_rate));
  // There are two cores.
  const auto three = cpus.Choose(3);
  ASSERT_TRUE(three.ok());
  EXPECT_THAT(three->cpus, ElementsAre(0, 1, 2));
  EXPECT_FALSE(cpus.IsQuiet(three->least.own_rate));
}

TEST(QuietCpusTest, AvoidsProcessorsThatOtherProcessesUse) {
  const TwoHalves machine{
      {{0, {5, 16}}, {1, {8, 16}}, {2, {14.5, 15}}, {3, {4, 16}}}};
  QuietCpus cpus = MakeCpus(machine);
  const auto chosen = cpus.Choose(1);
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(chosen->cpus, ElementsAre(2));
}

TEST(QuietCpusTest, KnowsAQuietRateFromBefore) {
  const TwoHalves machine{{{0, {9, 9}}, {1, {8, 8}}, {2, {8, 8}}, {3, {8, 8}}}};
  QuietCpus first = MakeCpus(machine);
  ASSERT_TRUE(first.Choose(1).ok());
  EXPECT_TRUE(first.IsQuiet(9));
  QuietCpus told = MakeCpus(machine, 16);
  ASSERT_TRUE(told.Choose(1).ok());
  EXPECT_FALSE(told.IsQuiet(9));
  EXPECT_EQ(told.best(), 16);
}

TEST(QuietCpusTest, IsNotMisledByAClockOfThreadsThatStoodStill) {
  const TwoHalves machine{
      {{0, {15, 19}}, {1, {8, 8}}, {2, {8, 8}}, {3, {8, 8}}}};
  QuietCpus cpus = MakeCpus(machine);
  ASSERT_TRUE(cpus.Choose(1).ok());
  EXPECT_EQ(cpus.best(), 15);
}

TEST(QuietCpusTest, TellsWhyAProbeFailed) {
  QuietCpus cpus(
      {0},
      [](absl::Span<const int>) -> absl::StatusOr<std::vector<CpuRate>> {
        return absl::InvalidArgumentError("refused");
      },
      0);
  EXPECT_THAT(cpus.Choose(1).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "refused"));
}

}  // namespace
}  // namespace optfarm::bench
