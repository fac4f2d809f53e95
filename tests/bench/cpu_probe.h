// What the processors of this machine give just now, and to whom.
//
// A virtual machine's processor is often one half of a core whose other half
// works for a neighbour. No clock shows that and hardly the rate of
// multiply-adds (docs/benchmarks.md), but a core takes in instructions for
// one half at a time, so that the rate of those that do nothing else tells it.

#ifndef OPTFARM_TESTS_BENCH_CPU_PROBE_H_
#define OPTFARM_TESTS_BENCH_CPU_PROBE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tests/bench/quiet_cpus.h"

namespace optfarm::bench {

// Those that this process may run on, in order; empty when the system does not
// say.
std::vector<int> AllowedCpus();

// How many empty instructions each of these processors takes in while all of
// them are probed at the same time. Takes about 6 ms.
// ERRORS: InvalidArgument when one may not be used.
absl::StatusOr<std::vector<CpuRate>> ProbeCpus(absl::Span<const int> cpus);

// Seconds for which these processors worked for anybody, other virtual
// machines included as far as the system knows; 0 when it does not say.
double BusySeconds(absl::Span<const int> cpus);

// Seconds of processors that this process and its children that ended used.
double OwnSeconds();

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_CPU_PROBE_H_
