// One simulated farm, from a seed: a server, workers, agents and clients, all
// that can go wrong between them, and then a time of peace in which everything
// has to come to its end.

#ifndef OPTFARM_TESTS_SIMULATION_SIMULATION_H_
#define OPTFARM_TESTS_SIMULATION_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace optfarm::simulation {

struct SimulationResult {
  // What does not hold; empty: all does.
  std::string failure;
  // The last that happened before that.
  std::string notes;
  // The same for the same seed.
  uint64_t digest = 0;
  int64_t steps = 0;
  int64_t commits = 0;
  int64_t refused_commits = 0;
  int crashes = 0;
  int jobs = 0;
  // UNITS: seconds of simulated time.
  int64_t seconds = 0;
};

// THREADS: one simulation at a time in a process.
// Of a failure it tells so many of the last notes.
SimulationResult Simulate(uint64_t seed, size_t notes = 100);

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_SIMULATION_H_
