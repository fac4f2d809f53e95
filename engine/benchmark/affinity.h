// Which processors a measurement runs on.

#ifndef OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_
#define OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_

#include <sched.h>

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

// As PinToCpus as long as it lives; pins to nothing when `cpus` are empty.
// THREADS: goes where it was made.
class ScopedCpus {
 public:
  explicit ScopedCpus(absl::Span<const int> cpus);
  ~ScopedCpus();
  ScopedCpus(const ScopedCpus&) = delete;
  ScopedCpus& operator=(const ScopedCpus&) = delete;

  // ERRORS: as PinToCpus.
  const absl::Status& status() const { return status_; }

 private:
  cpu_set_t before_;
  bool is_pinned_ = false;
  absl::Status status_;
};

// The processors with the highest top frequency ("big" cores); all when they
// are alike or the system does not say. `root` as for ReadEnvironment.
std::vector<int> BigCpus(const std::string& root = "");

// Reads "big", of which it leaves out what this process may not use, or
// "4,5,6,7"; empty for "".
// ERRORS: InvalidArgument.
absl::StatusOr<std::vector<int>> ParseCpus(absl::string_view text);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_AFFINITY_H_
