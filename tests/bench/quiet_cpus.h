// Which processors a round of measurements runs on: the quietest of the moment.
// The choice sees probes alone, never a measurement.

#ifndef OPTFARM_TESTS_BENCH_QUIET_CPUS_H_
#define OPTFARM_TESTS_BENCH_QUIET_CPUS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace optfarm::bench {

// Below this fraction of the best rate somebody shares the core. Undisturbed
// processors vary by 4 %, shared ones take five sixths at most.
inline constexpr double kQuiet = 0.9;

// What a processor takes in. UNITS: 1e9 instructions a second.
struct CpuRate {
  // Lower when other processes run on it, too.
  double rate = 0;
  // While it worked for the probe: lower when somebody shares the core.
  double own_rate = 0;
};

struct ChosenCpus {
  std::vector<int> cpus;
  // The least of their rates, all probed at the same time.
  CpuRate least;
};

class QuietCpus {
 public:
  // As ProbeCpus (cpu_probe.h).
  using Probe = std::function<absl::StatusOr<std::vector<CpuRate>>(
      absl::Span<const int>)>;

  // `quiet_rate`: what an undisturbed processor of this machine gave before, or
  // 0; it counts until one gives more.
  QuietCpus(std::vector<int> candidates, Probe probe, double quiet_rate)
      : candidates_(std::move(candidates)),
        probe_(std::move(probe)),
        best_(quiet_rate) {}

  // The quietest `count`, in order. Two that are halves of one core are quiet
  // one by one only; the second is taken when there is no other.
  // REQUIRES: as many candidates. ERRORS: those of the probe.
  absl::StatusOr<ChosenCpus> Choose(int count);

  // The least rates of these, all probed at the same time.
  absl::StatusOr<CpuRate> LeastRate(absl::Span<const int> cpus);

  // The best rate that any probe gave; own rates are less certain.
  double best() const { return best_; }
  bool IsQuiet(double rate) const { return rate >= kQuiet * best_; }

  const std::vector<int>& candidates() const { return candidates_; }

 private:
  std::vector<int> candidates_;
  Probe probe_;
  double best_;
};

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_QUIET_CPUS_H_
