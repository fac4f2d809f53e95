// Clamping and rounding for kernels that go through their elements a few
// hundred at a time, one operation after the other: compilers make vectors of
// such loops, but branches of one loop with all of it.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_INNER_LOOPS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_INNER_LOOPS_H_

#include <cstdint>

namespace optfarm::runtime {

// UNITS: elements between two loops; they stay in the level-1 cache.
inline constexpr int64_t kInnerLoop = 256;

// The nearest integer, halves to even, by a sum in which an integer is the last
// place. Exact up to 2^21 for floats and 2^50 for doubles; what is beyond stays
// beyond.
inline float RoundToEven(float x) {
  constexpr float kLastPlaceIsOne = 1.5f * (1 << 23);
  return (x + kLastPlaceIsOne) - kLastPlaceIsOne;
}
inline double RoundToEven(double x) {
  constexpr double kLastPlaceIsOne = 1.5 * (int64_t{1} << 52);
  return (x + kLastPlaceIsOne) - kLastPlaceIsOne;
}

// Brings values between `least` and `most`; what is no number becomes `least`.
template <typename A>
void ClampEach(A least, A most, int64_t count, A* values) {
  for (int64_t i = 0; i < count; ++i) {
    values[i] = values[i] > least ? values[i] : least;
  }
  for (int64_t i = 0; i < count; ++i) {
    values[i] = values[i] < most ? values[i] : most;
  }
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_INNER_LOOPS_H_
