// The epilogue of int8 tiles with 64-bit ARM's conversion that rounds halves to
// even and its narrowing moves that saturate. For files that are compiled for
// this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_NEON_INL_H_

#if defined(__aarch64__)

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_epilogue.h"

namespace optfarm::runtime {
namespace {

OPTFARM_INLINE int32x4_t ScaledNeon(int32x4_t sum, float32x4_t scale) {
  return vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sum), scale));
}

// What saturates does so beyond 0..255 as well, so that rounding first and
// clamping then gives what Int8Epilogue says.
OPTFARM_INLINE int16x8_t NarrowNeon(int32x4_t low, int32x4_t high) {
  return vqmovn_high_s32(vqmovn_s32(low), high);
}
OPTFARM_INLINE uint8x16_t NarrowNeon(int16x8_t low, int16x8_t high) {
  return vqmovun_high_s16(vqmovun_s16(low), high);
}

// Of sixteen channels.
class EpilogueNeon {
 public:
  // From the channel `channel` of the tile on, which exists.
  OPTFARM_INLINE EpilogueNeon(const Int8Epilogue& by, int channel)
      : zero_point_(vdupq_n_s16(static_cast<int16_t>(by.zero_point))),
        least_(vdupq_n_u8(static_cast<uint8_t>(by.least))) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      scales_[i] = vld1q_f32(by.scales + channel + 4 * i);
    }
  }

  // Whether there is neither a zero point nor a least value to see to, as
  // behind a rectifier.
  static OPTFARM_INLINE bool IsPlain(const Int8Epilogue& by) {
    return (by.zero_point | by.least) == 0;
  }

  // kIsPlain: IsPlain of what this was made of.
  template <bool kIsPlain>
  OPTFARM_INLINE uint8x16_t Quantize(const int32x4_t (&sums)[4]) const {
    const int16x8_t low = NarrowNeon(ScaledNeon(sums[0], scales_[0]),
                                     ScaledNeon(sums[1], scales_[1]));
    const int16x8_t high = NarrowNeon(ScaledNeon(sums[2], scales_[2]),
                                      ScaledNeon(sums[3], scales_[3]));
    if constexpr (kIsPlain) return NarrowNeon(low, high);
    return vmaxq_u8(
        NarrowNeon(vqaddq_s16(low, zero_point_), vqaddq_s16(high, zero_point_)),
        least_);
  }

 private:
  float32x4_t scales_[4];
  int16x8_t zero_point_;
  uint8x16_t least_;
};

}  // namespace
}  // namespace optfarm::runtime

#endif  // defined(__aarch64__)
#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_EPILOGUE_NEON_INL_H_
