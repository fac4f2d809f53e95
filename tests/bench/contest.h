// A net of ours against itself and against other engines: they take turns, and
// each round gives a ratio.

#ifndef OPTFARM_TESTS_BENCH_CONTEST_H_
#define OPTFARM_TESTS_BENCH_CONTEST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/runtime/core/thread_pool.h"
#include "tests/bench/bench_net.h"
#include "tests/bench/pinned_rounds.h"
#include "tests/bench/rounds.h"

namespace optfarm::bench {

struct ContestOptions {
  NetOptions net;
  // Chains.
  std::vector<std::string> against;
  // NAME=COMMAND.
  std::vector<std::string> peers;
  RoundLimits limits;
  // Of ours in each turn.
  double seconds = 0.5;
  bool with_reference = false;
  bool prints_rounds = false;
};

// Prints milliseconds and ratios.
absl::Status HoldContest(const std::string& net, const ContestOptions& options,
                         runtime::ThreadPool* pool, PinnedRounds* pinned);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_CONTEST_H_
