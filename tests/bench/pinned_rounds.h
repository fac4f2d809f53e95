// Gives rounds of measurements their processors, and notes what met them.

#ifndef OPTFARM_TESTS_BENCH_PINNED_ROUNDS_H_
#define OPTFARM_TESTS_BENCH_PINNED_ROUNDS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/thread_pool.h"
#include "tests/bench/quiet_cpus.h"
#include "tests/bench/rounds.h"

namespace optfarm::bench {

struct PinOptions {
  bool pin = true;
  // As QuietCpus takes it.
  double quiet_rate = 0;
  // UNITS: seconds that a turn waits for enough quiet processors.
  double patience = 2;
  // How often a turn is taken that shares a core.
  int tries = 4;
};

class PinnedRounds {
 public:
  // Pins nothing when the options say so, when there are fewer processors than
  // threads, and when the system refuses: `why_not()` says which.
  // OWNERSHIP: `pool` is the caller's and outlives this.
  PinnedRounds(const PinOptions& options, runtime::ThreadPool* pool);

  // Calls `turn`, which gives milliseconds, on as many processors as the pool
  // has threads: those of the turn before as long as they are quiet, and else
  // the quietest. Pins this thread, the pool's and those that this thread
  // starts. It is called again where somebody shared a core.
  absl::StatusOr<std::vector<Turn>> TakeTurns(
      absl::FunctionRef<absl::StatusOr<double>()> turn);

  // The next turn begins a round: it chooses processors anew.
  void BeginRound() { chosen_ = ChosenCpus(); }

  // Pins to the quietest processors.
  absl::Status Pin();

  // Empty when rounds are pinned.
  const std::string& why_not() const { return why_not_; }
  double best_rate() const { return cpus_.best(); }

 private:
  absl::StatusOr<Turn> TakeTurn(
      absl::FunctionRef<absl::StatusOr<double>()> turn);

  PinOptions options_;
  runtime::ThreadPool* pool_;
  QuietCpus cpus_;
  // The present ones; none when new ones are to be chosen.
  ChosenCpus chosen_;
  std::string why_not_;
};

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_PINNED_ROUNDS_H_
