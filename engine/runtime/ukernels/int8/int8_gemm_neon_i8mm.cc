// int8 GEMM with usmmla, Arm's product of 2x8 unsigned by 8x2 signed bytes: two
// rows of activations by two channels at a time, unsigned activations as they
// are.

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 16, kNr = 32, kKr = 8;

struct NeonI8mm {
  // 16 registers hold accumulators: 2x2 blocks of four pairs of rows by four
  // pairs of channels.
  static constexpr int kBandRows = 8;
  static constexpr int kBandChannels = 8;
  static constexpr int kChannelPairs = kBandChannels / 2;

  // Accumulators {r0 c0, r0 c1, r1 c0, r1 c1} of row pair and channel pair.
  template <int kPairs>
  struct Sums {
    int32x4_t of[kPairs][kChannelPairs];
  };

  // The halves of two registers side by side: {a low, b low}, {a high, b high}.
  static OPTFARM_INLINE int32x4_t LowHalves(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(
        vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }
  static OPTFARM_INLINE int32x4_t HighHalves(int32x4_t a, int32x4_t b) {
    return vreinterpretq_s32_s64(
        vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  }

  // One group of kKr values: `rows` has two rows each.
  template <int kPairs>
  static OPTFARM_INLINE void AddGroup(const uint8x16_t* rows,
                                      const int8_t* weights,
                                      Sums<kPairs>* sums) {
#pragma GCC unroll 4
    for (int c = 0; c < kChannelPairs; ++c) {
      const int8x16_t channels = vld1q_s8(weights + c * 2 * kKr);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        sums->of[p][c] = vusmmlaq_s32(sums->of[p][c], rows[p], channels);
      }
    }
  }

  template <int kRows, int kPairs>
  static OPTFARM_INLINE void AddTap(const Int8Band& band, int64_t tap,
                                    const int8_t* weights, Sums<kPairs>* sums) {
    constexpr int64_t kStep = kNr * kKr;
    const uint8_t* inputs[2 * kPairs];
    for (int r = 0; r < 2 * kPairs; ++r) {
      // An odd number of rows has its last one twice.
      inputs[r] = band.indirection(tap)[r < kRows ? r : kRows - 1];
    }
    const int64_t depth = band.tile.DepthOf(tap, kKr);
    int64_t k = 0;
    for (; k + 2 * kKr <= depth; k += 2 * kKr) {
      uint8x16_t first[kPairs], second[kPairs];
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        const uint64x2_t even =
            vreinterpretq_u64_u8(vld1q_u8(inputs[2 * p] + k));
        const uint64x2_t odd =
            vreinterpretq_u64_u8(vld1q_u8(inputs[2 * p + 1] + k));
        first[p] = vreinterpretq_u8_u64(vzip1q_u64(even, odd));
        second[p] = vreinterpretq_u8_u64(vzip2q_u64(even, odd));
      }
      AddGroup<kPairs>(first, weights, sums);
      AddGroup<kPairs>(second, weights + kStep, sums);
      weights += 2 * kStep;
    }
    if (k < depth) {
      uint8x16_t rows[kPairs];
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        rows[p] = vcombine_u8(vld1_u8(inputs[2 * p] + k),
                              vld1_u8(inputs[2 * p + 1] + k));
      }
      AddGroup<kPairs>(rows, weights, sums);
    }
  }

  template <int kRows>
  static void Run(const Int8Band& band) {
    constexpr int kPairs = (kRows + 1) / 2;
    Sums<kPairs> sums;
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int r1 = 2 * p + 1 < kRows ? 2 * p + 1 : 2 * p;
#pragma GCC unroll 2
      for (int c = 0; c < kChannelPairs; c += 2) {
        const int32x4_t init0 = InitOf(band, 2 * p, 2 * c);
        const int32x4_t init1 = InitOf(band, r1, 2 * c);
        sums.of[p][c] = LowHalves(init0, init1);
        sums.of[p][c + 1] = HighHalves(init0, init1);
      }
    }
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      AddTap<kRows, kPairs>(band, tap, weights, &sums);
      weights += band.tile.DepthOf(tap, kKr) * kNr;
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 2
      for (int c = 0; c < kChannelPairs; c += 2) {
        StoreAt<kNr>(band, 2 * p, 2 * c,
                     LowHalves(sums.of[p][c], sums.of[p][c + 1]));
        if (2 * p + 1 < kRows) {
          StoreAt<kNr>(band, 2 * p + 1, 2 * c,
                       HighHalves(sums.of[p][c], sums.of[p][c + 1]));
        }
      }
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonI8mm = {
    .name = "int8_gemm_neon_i8mm",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_i8mm = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = RunInt8Bands<NeonI8mm, kNr>},
};

}  // namespace optfarm::runtime
