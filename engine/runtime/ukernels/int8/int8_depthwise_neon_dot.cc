// int8 depthwise with sdot.

#include "engine/runtime/ukernels/int8/int8_depthwise_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kParts = kNr / 4;

struct NeonDot {
  static constexpr bool kRequantizes =
      kDepthwiseEpilogue != kStoresAccumulators;
  static constexpr bool kHasColumns = false;
  struct Sums {
    int32x4_t part[kParts];
  };
  struct Weights {
    int8x16_t part[kParts];
  };

  static void Interleave(const uint8_t* const* rows, uint8_t* out) {
    InterleaveNeon(rows, out);
  }
  static Sums Load(const int32_t* init) {
    Sums sums;
    for (int i = 0; i < kParts; ++i) sums.part[i] = vld1q_s32(init + i * 4);
    return sums;
  }
  static Weights LoadWeights(const int8_t* weights) {
    Weights loaded;
    for (int i = 0; i < kParts; ++i) {
      loaded.part[i] = vld1q_s8(weights + i * 16);
    }
    return loaded;
  }
  static void Store(const Sums& sums, int32_t* out) {
    for (int i = 0; i < kParts; ++i) vst1q_s32(out + i * 4, sums.part[i]);
  }
  static Sums AddWeights(const Sums& sums, const uint8_t* values,
                         const Weights& weights) {
    Sums made;
    for (int i = 0; i < kParts; ++i) {
      const int8x16_t c = vreinterpretq_s8_u8(vld1q_u8(values + i * 16));
      made.part[i] = vdotq_s32(sums.part[i], c, weights.part[i]);
    }
    return made;
  }
  static Sums Add(const Sums& sums, const uint8_t* values,
                  const int8_t* weights) {
    return AddWeights(sums, values, LoadWeights(weights));
  }
  // Three columns of sixteen channels.
  static OPTFARM_INLINE void AddWindow(const int8_t* values,
                                       const int8x16_t (&weights)[3][4],
                                       const int32x4_t (&init)[4],
                                       int32x4_t (&sums)[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) sums[i] = init[i];
    AddColumn<0>(values, weights[0], sums);
    AddColumn<1>(values, weights[1], sums);
    AddColumn<2>(values, weights[2], sums);
  }
  template <int kColumn>
  static OPTFARM_INLINE void AddColumn(const int8_t* values,
                                       const int8x16_t (&weights)[4],
                                       int32x4_t (&sums)[4]) {
    int8x16_t low, high;
    LoadTwo<kColumn * kColumnBytes>(values, &low, &high);
    sums[0] = vdotq_s32(sums[0], low, weights[0]);
    sums[1] = vdotq_s32(sums[1], high, weights[1]);
    LoadTwo<kColumn * kColumnBytes + 32>(values, &low, &high);
    sums[2] = vdotq_s32(sums[2], low, weights[2]);
    sums[3] = vdotq_s32(sums[3], high, weights[3]);
  }
  template <typename SumsOf>
  static void Requantize(const Int8Epilogue& by, int pixels,
                         const SumsOf& sums_of) {
    RequantizeNeon<NeonDot>(by, pixels, sums_of);
  }
};

// Sixteen channels at a time, whose weights stay in registers.
void RequantizeUsual(const Int8DepthwiseTile& tile, int pixels) {
  Int8DepthwiseLoops<NeonDot>::InterleaveColumns(
      tile, (pixels - 1) * tile.stride + 3, 1);
  for (int c = 0; c < tile.epilogue->channels; c += 16) {
    int8x16_t weights[3][4];
    int32x4_t init[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      init[i] = vld1q_s32(tile.init + c + 4 * i);
#pragma GCC unroll 3
      for (int x = 0; x < 3; ++x) {
        weights[x][i] =
            vld1q_s8(tile.weights + x * kColumnBytes + c * kKr + i * 16);
      }
    }
    RequantizeWindows(tile, pixels, c,
                      [&](const int8_t* values, int32x4_t(&sums)[4])
                          OPTFARM_INLINE_LAMBDA {
                            NeonDot::AddWindow(values, weights, init, sums);
                          });
  }
}

void RunDepthwise(const Int8DepthwiseTile& tile, int pixels) {
  if (IsUsual(tile) && tile.taps_y <= kKr) return RequantizeUsual(tile, pixels);
  Int8DepthwiseLoops<NeonDot>::Run(tile, pixels);
}

}  // namespace

constexpr MicroKernel kInt8DepthwiseNeonDot = {
    .name = "int8_depthwise_neon_dot",
    .kind = MicroKernelKind::kInt8Depthwise,
    .needs = {.neon = true, .neon_dot = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activation_shift = 128,
    .epilogue = kDepthwiseEpilogue,
    .run = {.int8_depthwise = RunDepthwise},
};

}  // namespace optfarm::runtime
