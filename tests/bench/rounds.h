// Rounds in which several take turns, whether they were disturbed, and what
// they say. Pure functions.

#ifndef OPTFARM_TESTS_BENCH_ROUNDS_H_
#define OPTFARM_TESTS_BENCH_ROUNDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/benchmark/statistics.h"

namespace optfarm::bench {

// More of the processors' time in others' hands disturbs a turn. Some of it is
// time that a peer left while it loaded, and ticks of the system's clock make
// it uncertain by some hundredths.
inline constexpr double kMostOthers = 0.1;

struct Turn {
  // It ran on these alone; empty: nothing was pinned or probed.
  std::vector<int> cpus;
  double milliseconds = 0;
  // The least own rate (quiet_cpus.h) before and after.
  double rate = 0;
  // The share of the processors' time that went to others.
  double others = 0;
};

// Of each that takes turns its turns, ours first. A turn in which a core was
// shared is taken again, so that a round does not fail as a whole: its first
// turns are as the machine was, its last ones are those that count.
struct Round {
  std::vector<std::vector<Turn>> turns;
};

// Whether somebody shared the core of one of its processors.
bool IsShared(const Turn& turn, double best_rate);
bool IsUndisturbed(const Turn& turn, double best_rate);
// Whether all of its last turns are.
bool IsUndisturbed(const Round& round, double best_rate);

// How many rounds to take.
struct RoundLimits {
  // Undisturbed ones; of any kind where nothing is probed.
  int wanted = 7;
  // Of any kind; 0 for four times as many as wanted.
  int most = 0;

  int Most() const { return most == 0 ? 4 * wanted : most; }
};

// ERRORS: InvalidArgument.
absl::Status CheckLimits(const RoundLimits& limits);

// Whether another round is to be taken.
bool WantsMore(absl::Span<const Round> rounds, double best_rate,
               const RoundLimits& limits);

// Of the last turns of undisturbed rounds, and of the first ones of all.
struct SummaryPair {
  benchmark::Summary undisturbed;
  benchmark::Summary all;
  int undisturbed_count = 0;
  int count = 0;

  // Of the undisturbed rounds; of all where there are none.
  const benchmark::Summary& Preferred() const {
    return undisturbed_count > 0 ? undisturbed : all;
  }
};

SummaryPair SummarizeTimes(absl::Span<const Round> rounds, double best_rate,
                           size_t series);
// Ours over that of another.
SummaryPair SummarizeRatios(absl::Span<const Round> rounds, double best_rate,
                            size_t series);

// "0.910 (0.890 .. 0.940), all rounds 0.930 (0.800 .. 1.300)": what all rounds
// say is left out where it is the same.
std::string DescribeRatios(const SummaryPair& ratios);

// "7 of 9 rounds undisturbed", what disturbed turns, and on which processors
// they ran.
std::string DescribeRounds(absl::Span<const Round> rounds, double best_rate);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_ROUNDS_H_
