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
  template <typename SumsOf>
  static void Requantize(const Int8Epilogue& by, int pixels,
                         const SumsOf& sums_of) {
    RequantizeNeon<Neon>(by, pixels, sums_of);
  }
#endif
};

#if defined(__aarch64__)

// Windows of three rows by three columns: products of sixteen channels, two in
// 16 bits, which are added to the sums without a detour over pairs of lanes.
struct NeonWindow {
  static constexpr int kTaps = 9;

  // Three rows of 32 values, less 128: three vectors of the first sixteen
  // channels, and at kKr vectors those of the others.
  static void Interleave(const uint8_t* const* rows, uint8_t* out) {
    const uint8x16_t shift = vdupq_n_u8(0x80);
    for (int c = 0; c < kNr; c += 16) {
      uint8x16x3_t three;
#pragma GCC unroll 3
      for (int y = 0; y < 3; ++y) {
        three.val[y] = veorq_u8(vld1q_u8(rows[y] + c), shift);
      }
      vst1q_u8_x3(out + c * kKr, three);
    }
  }

  // By column of the window, then by row.
  static OPTFARM_INLINE void LoadWeights(const int8_t* from,
                                         int8x16_t (&weights)[kTaps]) {
#pragma GCC unroll 3
    for (int x = 0; x < 3; ++x) {
      const int8x16x4_t rows = vld4q_s8(from + x * kColumnBytes);
#pragma GCC unroll 3
      for (int y = 0; y < 3; ++y) weights[3 * x + y] = rows.val[y];
    }
  }

  // Whether two products fit in 16 bits: all do but those of -128 by -128.
  static OPTFARM_INLINE bool FitInPairs(const int8x16_t (&weights)[kTaps]) {
    int8x16_t least = vdupq_n_s8(INT8_MAX);
#pragma GCC unroll 4
    for (int tap = 0; tap + 1 < kTaps; tap += 2) {
      least = vminq_s8(least, vmaxq_s8(weights[tap], weights[tap + 1]));
    }
    return vminvq_s8(least) != INT8_MIN;
  }

  // Written out: compilers keep the low halves of weights beside the whole.
  static OPTFARM_INLINE void Multiply(int8x16_t values, int8x16_t weights,
                                      int16x8_t* low, int16x8_t* high) {
    asm("smull %0.8h, %2.8b, %3.8b\n"
        "smull2 %1.8h, %2.16b, %3.16b"
        : "=&w"(*low), "=w"(*high)
        : "w"(values), "w"(weights));
  }
  static OPTFARM_INLINE void AddProducts(int8x16_t values, int8x16_t weights,
                                         int16x8_t* low, int16x8_t* high) {
    asm("smlal %0.8h, %2.8b, %3.8b\n"
        "smlal2 %1.8h, %2.16b, %3.16b"
        : "+&w"(*low), "+&w"(*high)
        : "w"(values), "w"(weights));
  }

  template <bool kInPairs>
  static OPTFARM_INLINE void AddWindow(const int8_t* from,
                                       const int8x16_t (&weights)[kTaps],
                                       const int32x4_t (&init)[4],
                                       int32x4_t (&sums)[4]) {
    int8x16_t values[kTaps];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = init[i];
    constexpr int kStep = kInPairs ? 2 : 1;
#pragma GCC unroll 9
    for (int tap = 0; tap < kTaps; tap += kStep) {
      // Columns are loaded when they are needed: registers are few.
      if (tap == 0 || tap == 6) {
        LoadThreeAndMove(&from, kColumnBytes, &values[tap]);
      } else if (tap == (kInPairs ? 2 : 3)) {
        LoadThreeAndMove(&from, kColumnBytes, &values[3]);
      }
      int16x8_t low, high;
      Multiply(values[tap], weights[tap], &low, &high);
      if (kInPairs && tap + 1 < kTaps) {
        AddProducts(values[tap + 1], weights[tap + 1], &low, &high);
      }
      sums[0] = vaddw_s16(sums[0], vget_low_s16(low));
      sums[1] = vaddw_high_s16(sums[1], low);
      sums[2] = vaddw_s16(sums[2], vget_low_s16(high));
      sums[3] = vaddw_high_s16(sums[3], high);
    }
  }

  template <bool kInPairs>
  static void Requantize(const Int8DepthwiseTile& tile, int pixels, int c,
                         const int8x16_t (&weights)[kTaps]) {
    int32x4_t init[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) init[i] = vld1q_s32(tile.init + c + 4 * i);
    RequantizeWindows(tile, pixels, c,
                      [&](const int8_t* values, int32x4_t(&sums)[4])
                          OPTFARM_INLINE_LAMBDA {
                            AddWindow<kInPairs>(values, weights, init, sums);
                          });
  }

  static void Run(const Int8DepthwiseTile& tile, int pixels) {
    Int8DepthwiseLoops<NeonWindow>::InterleaveColumns(
        tile, (pixels - 1) * tile.stride + 3, 1);
    for (int c = 0; c < tile.epilogue->channels; c += 16) {
      int8x16_t weights[kTaps];
      LoadWeights(tile.weights + c * kKr, weights);
      if (FitInPairs(weights)) {
        Requantize<true>(tile, pixels, c, weights);
      } else {
        Requantize<false>(tile, pixels, c, weights);
      }
    }
  }
};

#endif

void RunDepthwise(const Int8DepthwiseTile& tile, int pixels) {
#if defined(__aarch64__)
  if (IsUsual(tile) && tile.taps_y == 3) return NeonWindow::Run(tile, pixels);
#endif
  Int8DepthwiseLoops<Neon>::Run(tile, pixels);
}

}  // namespace

constexpr MicroKernel kInt8DepthwiseNeon = {
    .name = "int8_depthwise_neon",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.neon = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activation_shift = 128,
    .epilogue = kDepthwiseEpilogue,
    .run = {.int8_depthwise = RunDepthwise},
};

}  // namespace optfarm::runtime
