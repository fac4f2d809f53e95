// Depthwise tiles with NEON's products of 16 bits, whose neighbours are added
// to two sums a channel.

#include "engine/runtime/ukernels/int8/int8_depthwise_neon_inl.h"

namespace optfarm::runtime {
namespace {

constexpr int kParts = kInt8Columns / 2;

struct Neon {
  static constexpr bool kFinishes = false;
  // Part i: two sums each of channels 2 * i and 2 * i + 1.
  struct Sums {
    int32x4_t part[kParts];
  };
  struct Weights {
    int8x16_t part[kParts / 2];
  };

  static void Lay(const uint8_t* const* rows, uint8_t* out) {
    LayNeon(rows, out);
  }
  static Sums Load(const int32_t* numbers) {
    const int32x4_t zero = vdupq_n_s32(0);
    Sums sums;
    for (int i = 0; i < kParts; i += 2) {
      const int32x4x2_t two = vzipq_s32(vld1q_s32(numbers + i * 2), zero);
      sums.part[i] = two.val[0];
      sums.part[i + 1] = two.val[1];
    }
    return sums;
  }
  static Weights LoadWeights(const int8_t* weights) {
    Weights loaded;
    for (int i = 0; i < kParts / 2; ++i) {
      loaded.part[i] = vld1q_s8(weights + i * 16);
    }
    return loaded;
  }
  static void Store(const Sums& sums, int32_t* out) {
    for (int i = 0; i < kParts; ++i) {
      const int32x4_t s = sums.part[i];
      vst1_s32(out + i * 2, vpadd_s32(vget_low_s32(s), vget_high_s32(s)));
    }
  }
  static Sums AddWeights(const Sums& sums, const uint8_t* codes,
                         const Weights& weights) {
    Sums made;
    for (int i = 0; i < kParts; i += 2) {
      const int8x16_t c = vreinterpretq_s8_u8(vld1q_u8(codes + i * 8));
      const int8x16_t w = weights.part[i / 2];
      made.part[i] =
          vpadalq_s16(sums.part[i], vmull_s8(vget_low_s8(c), vget_low_s8(w)));
      made.part[i + 1] = vpadalq_s16(
          sums.part[i + 1], vmull_s8(vget_high_s8(c), vget_high_s8(w)));
    }
    return made;
  }
  static Sums Add(const Sums& sums, const uint8_t* codes,
                  const int8_t* weights) {
    return AddWeights(sums, codes, LoadWeights(weights));
  }
};

}  // namespace

void RunInt8DepthwiseNeon(const Int8DepthwiseTile& tile, int pixels) {
  RunNeonDepthwise<Neon>(tile, pixels);
}

}  // namespace optfarm::runtime
