// int8 depthwise for NEON. Activations are interleaved less 128, which makes
// them signed; the accumulator init makes up for it.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/int8/int8_depthwise_loops.h"

namespace optfarm::runtime {
namespace {

// Four rows of 32 values side by side, less 128.
inline void InterleaveNeon(const uint8_t* const* rows, uint8_t* out) {
  const uint8x16_t shift = vdupq_n_u8(0x80);
  for (int c = 0; c < kNr; c += 16) {
    uint8x16x4_t four;
#pragma GCC unroll 4
    for (int y = 0; y < kKr; ++y) {
      four.val[y] = veorq_u8(vld1q_u8(rows[y] + c), shift);
    }
    vst4q_u8(out + c * kKr, four);
  }
}

// What 128 in each quantized value gives, besides tile.init. Wraps.
inline void FindNeonInit(const Int8DepthwiseTile& tile, int32_t* init) {
  const int groups = (tile.taps_y + kKr - 1) / kKr;
  const int64_t blocks = int64_t{tile.sets} * tile.taps_x * groups;
  for (int c = 0; c < kNr; c += 4) {
    int32x4_t sums = vdupq_n_s32(0);
    for (int64_t i = 0; i < blocks; ++i) {
      const int8x16_t w = vld1q_s8(tile.weights + i * kColumnBytes + c * kKr);
      const int16x8_t pairs = vpaddlq_s8(w);
      sums = vaddq_s32(sums, vpaddlq_s16(pairs));
    }
    vst1q_s32(init + c,
              vaddq_s32(vld1q_s32(tile.init + c), vshlq_n_s32(sums, 7)));
  }
}

// Isa as Int8DepthwiseLoops wants it, with InterleaveNeon.
template <typename Isa>
void RunNeonDepthwise(const Int8DepthwiseTile& tile, int pixels) {
  int32_t init[kNr];
  FindNeonInit(tile, init);
  Int8DepthwiseTile shifted = tile;
  shifted.init = init;
  Int8DepthwiseLoops<Isa>::Run(shifted, pixels);
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_DEPTHWISE_NEON_INL_H_
