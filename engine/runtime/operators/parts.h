// Shares of what threads do together.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_

#include <cstdint>

namespace optfarm::runtime {

// Where part `i` of `parts` parts of `count` items begins; parts differ by one
// item at most. REQUIRES: 0 <= i <= parts.
inline int64_t Boundary(int64_t count, int64_t parts, int64_t i) {
  return count * i / parts;
}

// How much longer the longest of `parts` such parts is than their mean.
// REQUIRES: count > 0.
inline double Imbalance(int64_t count, int64_t parts) {
  return static_cast<double>((count + parts - 1) / parts * parts) /
         static_cast<double>(count);
}

// UNITS: bytes of input that are worked on again and again: half of what a
// level-2 cache holds.
int64_t BlockBytes();

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_PARTS_H_
