// What the GEMM micro-kernels for NEON share: the accumulators' way in and out.
// For files that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_

#include <arm_neon.h>

#include "engine/runtime/ukernels/always_inline.h"
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

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_GEMM_NEON_INL_H_
