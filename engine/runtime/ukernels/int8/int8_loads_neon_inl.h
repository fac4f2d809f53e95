// Loads of several vectors in one instruction and in the order in which they
// are written, for 64-bit ARM's int8 kernels.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_LOADS_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_LOADS_NEON_INL_H_

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"

namespace optfarm::runtime {
namespace {

// Two vectors from a constant place, after all that was written
// before: compilers would load more at a time than there are registers for.
template <int kPlace>
OPTFARM_INLINE void LoadTwo(const int8_t* weights, int8x16_t* low,
                            int8x16_t* high) {
  asm volatile("ldp %q0, %q1, [%2, %c3]"
               : "=w"(*low), "=w"(*high)
               : "r"(weights), "i"(kPlace)
               : "memory");
}

// The same of the first two at a pointer, which is moved on.
template <int kMove>
OPTFARM_INLINE void LoadTwoAndMove(const int8_t** from, int8x16_t* low,
                                   int8x16_t* high) {
  asm volatile("ldp %q0, %q1, [%2], %c3"
               : "=w"(*low), "=w"(*high), "+r"(*from)
               : "i"(kMove)
               : "memory");
}
// The first four at a pointer, which is moved on by `move` bytes.
OPTFARM_INLINE void LoadFourAndMove(const int8_t** from, int64_t move,
                                    int8x16_t (&values)[4]) {
  int8x16x4_t four;
  asm volatile("ld1 {%S0.16b - %V0.16b}, [%1], %2"
               : "=w"(four), "+r"(*from)
               : "r"(move)
               : "memory");
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) values[i] = four.val[i];
}
// The same of three.
OPTFARM_INLINE void LoadThreeAndMove(const int8_t** from, int64_t move,
                                     int8x16_t* values) {
  int8x16x3_t three;
  asm volatile("ld1 {%S0.16b - %U0.16b}, [%1], %2"
               : "=w"(three), "+r"(*from)
               : "r"(move)
               : "memory");
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) values[i] = three.val[i];
}
template <int kPlace>
OPTFARM_INLINE void LoadOne(const int8_t* from, int8x16_t* value) {
  asm volatile("ldr %q0, [%1, %c2]"
               : "=w"(*value)
               : "r"(from), "i"(kPlace)
               : "memory");
}

// So many vectors, from the last to the first, and moves on behind them.
template <int kCount, int kLeft = kCount>
OPTFARM_INLINE void LoadVectors(const int8_t** from,
                                int8x16_t (&values)[kCount]) {
  if constexpr (kLeft == 1) {
    LoadOne<0>(*from, &values[0]);
    *from += 16 * kCount;
  } else if constexpr (kLeft == 2) {
    LoadTwoAndMove<16 * kCount>(from, &values[0], &values[1]);
  } else if constexpr (kLeft % 2 != 0) {
    LoadOne<16 * (kLeft - 1)>(*from, &values[kLeft - 1]);
    LoadVectors<kCount, kLeft - 1>(from, values);
  } else {
    LoadTwo<16 * (kLeft - 2)>(*from, &values[kLeft - 2], &values[kLeft - 1]);
    LoadVectors<kCount, kLeft - 2>(from, values);
  }
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // defined(__aarch64__)
#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_LOADS_NEON_INL_H_
