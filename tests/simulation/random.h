// Random numbers that are the same on every machine and with every library.

#ifndef OPTFARM_TESTS_SIMULATION_RANDOM_H_
#define OPTFARM_TESTS_SIMULATION_RANDOM_H_

#include <cstdint>

#include "absl/time/time.h"

namespace optfarm::simulation {

// SplitMix64. THREADS: one thread at a time.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. count - 1. REQUIRES: count > 0.
  int Below(int count) {
    return static_cast<int>(Next() % static_cast<uint64_t>(count));
  }
  // least .. most.
  int Between(int least, int most) { return least + Below(most - least + 1); }
  double Fraction() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Fraction() < probability; }
  // In whole microseconds.
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    const int64_t range = absl::ToInt64Microseconds(most - least) + 1;
    return least + absl::Microseconds(static_cast<int64_t>(
                       Next() % static_cast<uint64_t>(range)));
  }

 private:
  uint64_t state_;
};

}  // namespace optfarm::simulation

#endif  // OPTFARM_TESTS_SIMULATION_RANDOM_H_
