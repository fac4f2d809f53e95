// int8 output stages as the compiler vectorizes them for NEON; on 64-bit ARM,
// whose conversions round and saturate, those that take most time by hand.

#include <arm_neon.h>

#include "engine/runtime/ukernels/int8/int8_stage_loops.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

struct Neon : Int8StageLoops<Neon> {
#if defined(__aarch64__)
  static void QuantizeFloats(const Int8Stage& stage, const float* floats,
                             int64_t count, uint8_t* out) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      uint32x4_t values[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const float32x4_t x =
            vmulq_n_f32(vld1q_f32(floats + i + 4 * v), stage.factor);
        // NaN and what is negative become 0.
        values[v] =
            vcvtq_u32_f32(vsubq_f32(vrndaq_f32(x), vdupq_n_f32(stage.summand)));
      }
      const uint16x8_t low = vqmovn_high_u32(vqmovn_u32(values[0]), values[1]);
      const uint16x8_t high = vqmovn_high_u32(vqmovn_u32(values[2]), values[3]);
      vst1q_u8(out + i, vqmovn_high_u16(vqmovn_u16(low), high));
    }
    Int8StageLoops::QuantizeFloats(stage, floats + i, count - i, out + i);
  }

  // Eight values of t, four of each half: the limb's products, and the carry
  // of the limb below.
  struct Eight {
    int32x4_t low, high;
  };
  static OPTFARM_INLINE Eight AddLimb(const Int8LinearSum& sum, int limb,
                                      int16x8_t a, int16x8_t b, Eight below) {
    const int16_t* steps = sum.steps[limb];
    const int32x4_t zero = vdupq_n_s32(sum.zeros[limb]);
    Eight t = {vmlal_n_s16(zero, vget_low_s16(a), steps[0]),
               vmlal_high_n_s16(zero, a, steps[0])};
    t.low = vmlal_n_s16(t.low, vget_low_s16(b), steps[1]);
    t.high = vmlal_high_n_s16(t.high, b, steps[1]);
    if (limb == 0) return t;
    return {vsraq_n_s32(t.low, below.low, Int8LinearSum::kLimbBits),
            vsraq_n_s32(t.high, below.high, Int8LinearSum::kLimbBits)};
  }
  static OPTFARM_INLINE int16x8_t Line(const Int8LinearSum& sum, uint8x8_t a,
                                       uint8x8_t b) {
    const int16x8_t x = vreinterpretq_s16_u16(vmovl_u8(a));
    const int16x8_t y = vreinterpretq_s16_u16(vmovl_u8(b));
    Eight t = AddLimb(sum, 0, x, y, Eight());
    t = AddLimb(sum, 1, x, y, t);
    t = AddLimb(sum, 2, x, y, t);
    return vqshrn_high_n_s32(vqshrn_n_s32(t.low, Int8LinearSum::kLimbBits),
                             t.high, Int8LinearSum::kLimbBits);
  }

  static void LinearSum(const uint8_t* a, const uint8_t* b, int64_t count,
                        const Int8LinearSum& sum, uint8_t* out) {
    static_assert(Int8LinearSum::kLimbs == 3);
    const Int8LinearSum by = sum;
    const uint8x16_t least = vdupq_n_u8(static_cast<uint8_t>(sum.least));
    const uint8x16_t most = vdupq_n_u8(static_cast<uint8_t>(sum.most));
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const uint8x16_t x = vld1q_u8(a + i), y = vld1q_u8(b + i);
      const int16x8_t low = Line(by, vget_low_u8(x), vget_low_u8(y));
      const int16x8_t high = Line(by, vget_high_u8(x), vget_high_u8(y));
      const uint8x16_t values = vqmovun_high_s16(vqmovun_s16(low), high);
      vst1q_u8(out + i, vminq_u8(vmaxq_u8(values, least), most));
    }
    Int8StageLoops::LinearSum(a + i, b + i, count - i, sum, out + i);
  }
#endif
};

constexpr Int8StageFunctions kFunctions = Neon::Functions();

}  // namespace

constexpr MicroKernel kInt8OutputStagesNeon = {
    .name = "int8_output_stages_neon",
    .kind = MicroKernelKind::kInt8OutputStages,
    .needs = {.neon = true},
    .epilogue = kRequantizes,
    .run = {.int8_stages = &kFunctions},
};

}  // namespace optfarm::runtime
