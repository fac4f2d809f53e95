// Which processors a measurement runs on.

#ifndef OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_
#define OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace optfarm::benchmark {

// Lets this thread, and the threads it starts from now on, run on these
// processors only.
// ERRORS: InvalidArgument when one is not there or may not be used.
absl::Status PinToCpus(absl::Span<const int> cpus);

// The processors with the highest top frequency ("big" cores); all when they
// are alike or the system does not say. `root` as for ReadEnvironment.
std::vector<int> BigCpus(const std::string& root = "");

// Reads "big" or "4,5,6,7"; empty for "".
// ERRORS: InvalidArgument.
absl::StatusOr<std::vector<int>> ParseCpus(absl::string_view text);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_
