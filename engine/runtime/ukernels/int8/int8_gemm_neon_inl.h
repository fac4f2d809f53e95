// What the GEMM micro-kernels for NEON share: the accumulators' way in and out.
// For files that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_

#include <arm_neon.h>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue_neon_inl.h"
#include "engine/runtime/ukernels/int8/int8_gemm_bands_inl.h"

namespace optfarm::runtime {
namespace {

// Accumulator init of row r, channels [c, c + 4) of a band.
OPTFARM_INLINE int32x4_t InitOf(const Int8Band& band, int r, int c) {
  return vaddq_s32(vld1q_s32(band.tile.init + band.channel + c),
                   vdupq_n_s32(band.tile.row_init[band.row + r]));
}

// Stores them into tiles of kNr channels.
template <int kNr>
OPTFARM_INLINE void StoreAt(const Int8Band& band, int r, int c,
                            int32x4_t sums) {
  vst1q_s32(band.tile.out + (band.row + r) * kNr + band.channel + c, sums);
}

// Bands have functions of their own, in which all registers are theirs.
#define OPTFARM_NOINLINE __attribute__((noinline))

#if defined(__aarch64__)

// Two vectors of weights from a constant place, after all that was written
// before: compilers would load more at a time than there are registers for.
template <int kPlace>
OPTFARM_INLINE void LoadTwo(const int8_t* weights, int8x16_t* low,
                            int8x16_t* high) {
  asm volatile("ldp %q0, %q1, [%2, %c3]"
               : "=w"(*low), "=w"(*high)
               : "r"(weights), "i"(kPlace)
               : "memory");
}

// Keeps compilers from making a copy of a loop for the taps of the residual.
OPTFARM_INLINE void KeepLoop(int64_t* tap) { asm("" : "+r"(*tap)); }

// Whether a band of a tile that is requantized has no channel that exists.
OPTFARM_INLINE bool IsBeyond(const Int8Band& band) {
  return band.tile.epilogue != nullptr &&
         band.channel >= band.tile.epilogue->channels;
}

// `rows` rows of `channels` out of sixteen values. Rare: one small copy of the
// code is enough.
[[maybe_unused]] __attribute__((noinline, noclone)) void CopyRows(
    const uint8_t* values, int rows, int channels, int64_t stride,
    uint8_t* out) {
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < channels; ++c) {
      asm volatile("");
      out[r * stride + c] = values[r * 16 + c];
    }
  }
}

// Ends a band of sixteen channels: `sums` are the accumulators of its rows,
// four vectors each, which are requantized or stored into tiles of kNr
// channels.
template <int kNr, int kRows>
OPTFARM_INLINE void EndBand(const Int8Band& band,
                            const int32x4_t (&sums)[kRows][4], int rows) {
  if (band.tile.epilogue == nullptr) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      if (r == rows) return;
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) StoreAt<kNr>(band, r, 4 * v, sums[r][v]);
    }
    return;
  }
  const Int8Epilogue& by = *band.tile.epilogue;
  const EpilogueNeon epilogue(by, band.channel);
  const int left = by.channels - band.channel;
  uint8_t* out = by.out + band.row * by.stride + band.channel;
  uint8_t some[16 * kRows];
  uint8_t* to = left < 16 ? some : out;
  const int64_t stride = left < 16 ? 16 : by.stride;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (r == rows) break;
    vst1q_u8(to + r * stride, epilogue.Quantize(sums[r]));
  }
  if (left < 16) CopyRows(some, rows, left, by.stride, out);
}

#endif  // defined(__aarch64__)

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
