// int8 depthwise with NEON's 16-bit products, whose neighbours are added to two
// accumulators a channel.

#include "engine/runtime/ukernels/int8/int8_depthwise_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kParts = kNr / 2;

struct Neon {
  static constexpr bool kRequantizes =
      kDepthwiseEpilogue != kStoresAccumulators;
  static constexpr bool kHasColumns = false;
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
#if defined(__aarch64__)
  static OPTFARM_INLINE void AddWindow(const uint8_t* values,
                                       const int8x16_t (&weights)[3][4],
                                       const int32x4_t (&init)[4],
                                       int32x4_t (&sums)[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      // Two sums for each channel.
      int32x4_t low, high;
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x) {
        const int8x16_t v =
            vreinterpretq_s8_u8(vld1q_u8(values + x * kColumnBytes + i * 16));
        const int16x8_t first =
            vmull_s8(vget_low_s8(v), vget_low_s8(weights[x][i]));
        const int16x8_t second = vmull_high_s8(v, weights[x][i]);
        low = x == 0 ? vpaddlq_s16(first) : vpadalq_s16(low, first);
        high = x == 0 ? vpaddlq_s16(second) : vpadalq_s16(high, second);
      }
      sums[i] = vaddq_s32(vpaddq_s32(low, high), init[i]);
    }
  }
  template <typename SumsOf>
  static void Requantize(const Int8Epilogue& by, int pixels,
                         const SumsOf& sums_of) {
    RequantizeNeon<Neon>(by, pixels, sums_of);
  }
#endif
};

}  // namespace

constexpr MicroKernel kInt8DepthwiseNeon = {
    .name = "int8_depthwise_neon",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.neon = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activation_shift = 128,
    .epilogue = kDepthwiseEpilogue,
    .run = {.int8_depthwise = RunNeonDepthwise<Neon>},
};

}  // namespace optfarm::runtime
