// int8 depthwise with NEON's 16-bit products, whose neighbours are added to two
// accumulators a channel.

#include "engine/runtime/ukernels/int8/int8_depthwise_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kParts = kNr / 2;

struct Neon {
  static constexpr bool kRequantizes = false;
  // Part i: two sums each of channels 2 * i and 2 * i + 1.
  struct Sums {
    int32x4_t part[kParts];
  };
  struct Weights {
    int8x16_t part[kParts / 2];
  };

  static void Interleave(const uint8_t* const* rows, uint8_t* out) {
    InterleaveNeon(rows, out);
  }
  static Sums Load(const int32_t* init) {
    const int32x4_t zero = vdupq_n_s32(0);
    Sums sums;
    for (int i = 0; i < kParts; i += 2) {
      const int32x4x2_t two = vzipq_s32(vld1q_s32(init + i * 2), zero);
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
  static Sums AddWeights(const Sums& sums, const uint8_t* values,
                         const Weights& weights) {
    Sums made;
    for (int i = 0; i < kParts; i += 2) {
      const int8x16_t c = vreinterpretq_s8_u8(vld1q_u8(values + i * 8));
      const int8x16_t w = weights.part[i / 2];
      made.part[i] =
          vpadalq_s16(sums.part[i], vmull_s8(vget_low_s8(c), vget_low_s8(w)));
      made.part[i + 1] = vpadalq_s16(
          sums.part[i + 1], vmull_s8(vget_high_s8(c), vget_high_s8(w)));
    }
    return made;
  }
  static Sums Add(const Sums& sums, const uint8_t* values,
                  const int8_t* weights) {
    return AddWeights(sums, values, LoadWeights(weights));
  }
};

}  // namespace

constexpr MicroKernel kInt8DepthwiseNeon = {
    .name = "int8_depthwise_neon",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.neon = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_depthwise = RunNeonDepthwise<Neon>},
};

}  // namespace optfarm::runtime
