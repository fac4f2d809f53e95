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

  struct LongLine {
    OPTFARM_INLINE uint8x16_t Sixteen(const uint8_t* a,
                                      const uint8_t* b) const {
      const uint8x16_t x = vld1q_u8(a), y = vld1q_u8(b);
      const int16x8_t low = Line(sum, vget_low_u8(x), vget_low_u8(y));
      const int16x8_t high = Line(sum, vget_high_u8(x), vget_high_u8(y));
      return vqmovun_high_s16(vqmovun_s16(low), high);
    }
    // A copy, which nothing that is stored can change.
    const Int8LinearSum sum;
  };

  // The same of two limbs: everything times four, so that adding a zero, what
  // comes after the binary point being cut off, and narrowing are one
  // instruction. UNITS: steps[0] and zeros[0] are of limb 1, times four and 16.
  struct ShortLine {
    explicit OPTFARM_INLINE ShortLine(const Int8LinearSum& sum)
        : zeros{vdupq_n_s32(sum.zeros[1] * 16), vdupq_n_s32(sum.zeros[2] * 4)} {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        low[i] = static_cast<uint16_t>(sum.steps[1][i] << 2);
        high[i] = sum.steps[2][i];
      }
    }
    // Whether nothing leaves 32 bits, nor the result 16.
    static OPTFARM_INLINE bool Fits(const Int8LinearSum& sum) {
      constexpr int32_t kMost = 1 << 27;
      return sum.IsShort() && sum.zeros[2] >= -kMost && sum.zeros[2] <= kMost;
    }

    // Eight values; the operands are times four.
    OPTFARM_INLINE int16x8_t Of(uint16x8_t a, uint16x8_t b) const {
      const uint32x4_t carry_low = vmlal_n_u16(
          vmull_n_u16(vget_low_u16(a), low[0]), vget_low_u16(b), low[1]);
      const uint32x4_t carry_high =
          vmlal_high_n_u16(vmull_high_n_u16(a, low[0]), b, low[1]);
      const int16x8_t x = vreinterpretq_s16_u16(a);
      const int16x8_t y = vreinterpretq_s16_u16(b);
      const int32x4_t sum_low = vmlal_n_s16(
          vmull_n_s16(vget_low_s16(x), high[0]), vget_low_s16(y), high[1]);
      const int32x4_t sum_high =
          vmlal_high_n_s16(vmull_high_n_s16(x, high[0]), y, high[1]);
      return vaddhn_high_s32(
          vaddhn_s32(vaddw_s16(sum_low, Carry(carry_low)), zeros[1]),
          vaddw_s16(sum_high, Carry(carry_high)), zeros[1]);
    }
    OPTFARM_INLINE int16x4_t Carry(uint32x4_t products) const {
      return vreinterpret_s16_u16(
          vaddhn_u32(products, vreinterpretq_u32_s32(zeros[0])));
    }

    OPTFARM_INLINE uint8x16_t Sixteen(const uint8_t* a,
                                      const uint8_t* b) const {
      const uint8x16_t x = vld1q_u8(a), y = vld1q_u8(b);
      const int16x8_t first =
          Of(vshll_n_u8(vget_low_u8(x), 2), vshll_n_u8(vget_low_u8(y), 2));
      const int16x8_t second = Of(vshll_high_n_u8(x, 2), vshll_high_n_u8(y, 2));
      return vqmovun_high_s16(vqmovun_s16(first), second);
    }

    uint16_t low[2];
    int16_t high[2];
    int32x4_t zeros[2];
  };

  static void LinearSum(const uint8_t* a, const uint8_t* b, int64_t count,
                        const Int8LinearSum& sum, uint8_t* out) {
    static_assert(Int8LinearSum::kLimbs == 3 && Int8LinearSum::kLimbBits == 14);
    const int64_t whole = count / 16 * 16;
    if (ShortLine::Fits(sum)) {
      AddSixteens(ShortLine(sum), a, b, whole, sum, out);
    } else {
      AddSixteens(LongLine{sum}, a, b, whole, sum, out);
    }
    Int8StageLoops::LinearSum(a + whole, b + whole, count - whole, sum,
                              out + whole);
  }
  template <typename LineOf>
  static OPTFARM_INLINE void AddSixteens(const LineOf& line, const uint8_t* a,
                                         const uint8_t* b, int64_t count,
                                         const Int8LinearSum& sum,
                                         uint8_t* out) {
    const uint8x16_t least = vdupq_n_u8(static_cast<uint8_t>(sum.least));
    const uint8x16_t most = vdupq_n_u8(static_cast<uint8_t>(sum.most));
    for (int64_t i = 0; i < count; i += 16) {
      const uint8x16_t values = line.Sixteen(a + i, b + i);
      vst1q_u8(out + i, vminq_u8(vmaxq_u8(values, least), most));
    }
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
