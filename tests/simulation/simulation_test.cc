// The farm as a simulation: seeds that are run each time, and that a seed is
// always the same run. scripts/simulate runs as many as one likes.

#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace optfarm::simulation {
namespace {

// A fixed set; slow builds, with sanitizers for instance, get through less of
// it.
constexpr uint64_t kSeeds = 60;
constexpr uint64_t kLeastSeeds = 4;
constexpr std::chrono::seconds kLongest{8};

TEST(SimulationTest, PromisesHoldWhateverFails) {
  const auto begin = std::chrono::steady_clock::now();
  int64_t steps = 0;
  int64_t commits = 0;
  int64_t refused = 0;
  int64_t crashes = 0;
  int64_t jobs = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SimulationResult result = Simulate(seed);
    ASSERT_EQ(result.failure, "")
        << "seed " << seed << "; scripts/simulate --seeds=" << seed << ".."
        << seed << " runs it again\n"
        << result.notes;
    steps += result.steps;
    commits += result.commits;
    refused += result.refused_commits;
    crashes += result.crashes;
    jobs += result.jobs;
    if (seed >= kLeastSeeds &&
        std::chrono::steady_clock::now() - begin > kLongest) {
      break;
    }
  }
  // Something went on, and something went wrong.
  EXPECT_GT(steps, 10000);
  EXPECT_GT(commits, 1000);
  EXPECT_GT(refused, 0);
  EXPECT_GT(crashes, 0);
  EXPECT_GT(jobs, 20);
}

TEST(SimulationTest, ASeedIsAlwaysTheSameRun) {
  for (const uint64_t seed : {16, 17}) {
    const SimulationResult once = Simulate(seed);
    const SimulationResult again = Simulate(seed);
    EXPECT_EQ(once.digest, again.digest) << "seed " << seed;
    EXPECT_EQ(once.steps, again.steps) << "seed " << seed;
  }
  EXPECT_NE(Simulate(16).digest, Simulate(17).digest);
}

}  // namespace
}  // namespace optfarm::simulation
