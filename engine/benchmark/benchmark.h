// Measures graphs on this machine: the room's one main header. Variants are
// measured in turn within each round, so that drift of the machine (heat,
// other load) meets all of them; every number carries the environment it was
// taken in and says when it should not be trusted.

#ifndef OPTFARM_ENGINE_BENCHMARK_BENCHMARK_H_
#define OPTFARM_ENGINE_BENCHMARK_BENCHMARK_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/benchmark/benchmark_request.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

struct BenchmarkProgress {
  std::string stage;
  // 0..1, never falling.
  double fraction = 0;
};
// A status that is not OK ends the benchmark with it (cancellation).
using BenchmarkProgressFn =
    std::function<absl::Status(const BenchmarkProgress&)>;

// What came of a variant in an engine.
struct EngineOutcome {
  std::string variant;
  std::string engine;
  // UNITS: threads.
  int threads = 1;
  // As the engine says; empty when it did not get so far.
  std::string version;
  // Why there is no measurement of it; empty: there is one.
  std::string failure;
};

// One measurement a thread count and variant, variants in the order given.
// First each variant is loaded and run while no other is in memory: that gives
// its load time, first run and peak memory (of the whole process). Then all are
// timed in rounds.
// ERRORS: those of loading and running a graph, naming the variant;
// InvalidArgument for a request without variants or with silly numbers.
// An engine's trouble fails nothing: its variant has no measurement, and its
// outcome says why, as does the measurement of the variant it was to be
// compared with. `engines` gets one outcome for each thread count and variant
// that an engine runs; nullptr: nobody wants to know.
absl::StatusOr<std::vector<v1::Measurement>> RunBenchmark(
    const BenchmarkRequest& request, const BenchmarkProgressFn& progress,
    std::vector<EngineOutcome>* engines = nullptr);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_BENCHMARK_H_
