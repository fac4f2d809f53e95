// int8 GEMM with usmmla, Arm's product of 2x8 unsigned by 8x2 signed bytes: two
// rows of activations by two channels at a time, unsigned activations as they
// are.

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 8;

struct NeonI8mm {
  // 24 registers hold accumulators: 2x2 blocks of three pairs of rows by eight
  // pairs of channels.
  static constexpr int kBandRows = 6;
  static constexpr int kBandChannels = 16;
  static constexpr int kChannelPairs = kBandChannels / 2;
  static constexpr int kStep = kNr * kKr;

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

  // In the order in which it is written (LoadTwo).
  static OPTFARM_INLINE void AddBlock(uint8x16_t rows, int8x16_t channels,
                                      int32x4_t* sum) {
    asm volatile("usmmla %0.4s, %1.16b, %2.16b"
                 : "+w"(*sum)
                 : "w"(rows), "w"(channels));
  }

  template <int kPairs, int kPlace, int kFirst>
  static OPTFARM_INLINE void AddTwo(const uint8x16_t* rows,
                                    const int8_t* weights, Sums<kPairs>* sums) {
    int8x16_t low, high;
    LoadTwo<kPlace + kFirst * 2 * kKr>(weights, &low, &high);
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      AddBlock(rows[p], low, &sums->of[p][kFirst]);
      AddBlock(rows[p], high, &sums->of[p][kFirst + 1]);
    }
  }

  // One group of kKr values, whose weights stand kPlace behind `weights`:
  // `rows` has two rows each.
  template <int kPairs, int kPlace>
  static OPTFARM_INLINE void AddGroup(const uint8x16_t* rows,
                                      const int8_t* weights,
                                      Sums<kPairs>* sums) {
    AddTwo<kPairs, kPlace, 0>(rows, weights, sums);
    AddTwo<kPairs, kPlace, 2>(rows, weights, sums);
    AddTwo<kPairs, kPlace, 4>(rows, weights, sums);
    AddTwo<kPairs, kPlace, 6>(rows, weights, sums);
  }

  template <int kPairs>
  static OPTFARM_INLINE void AddTap(const Int8Band& band, int rows, int64_t tap,
                                    const int8_t* weights, Sums<kPairs>* sums) {
    const uint8_t* const* pointers = band.indirection(tap);
    const uint8_t* inputs[2 * kPairs];
#pragma GCC unroll 8
    for (int r = 0; r < 2 * kPairs - 1; ++r) inputs[r] = pointers[r];
    // An odd number of rows has its last one twice.
    inputs[2 * kPairs - 1] = pointers[rows - 1];
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
      AddGroup<kPairs, 0>(first, weights, sums);
      AddGroup<kPairs, kStep>(second, weights, sums);
      weights += 2 * kStep;
    }
    if (k < depth) {
      uint8x16_t last[kPairs];
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        last[p] = vcombine_u8(vld1_u8(inputs[2 * p] + k),
                              vld1_u8(inputs[2 * p + 1] + k));
      }
      AddGroup<kPairs, 0>(last, weights, sums);
    }
  }

  template <int kRows>
  static OPTFARM_INLINE void Run(const Int8Band& band) {
    RunPairs<(kRows + 1) / 2>(band, kRows);
  }

  template <int kPairs>
  OPTFARM_NOINLINE static void RunPairs(const Int8Band& band, int rows) {
    if (IsBeyond(band)) return;
    Sums<kPairs> sums;
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      const int below = 2 * p + 1 < rows ? 2 * p + 1 : 2 * p;
#pragma GCC unroll 4
      for (int c = 0; c < kChannelPairs; c += 2) {
        const int32x4_t init0 = InitOf(band, 2 * p, 2 * c);
        const int32x4_t init1 = InitOf(band, below, 2 * c);
        sums.of[p][c] = LowHalves(init0, init1);
        sums.of[p][c + 1] = HighHalves(init0, init1);
      }
    }
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      KeepLoop(&tap);
      AddTap<kPairs>(band, rows, tap, weights, &sums);
      weights += band.tile.DepthOf(tap, kKr) * kNr;
    }
    int32x4_t by_row[2 * kPairs][4];
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const int32x4_t even = sums.of[p][2 * v], odd = sums.of[p][2 * v + 1];
        by_row[2 * p][v] = LowHalves(even, odd);
        by_row[2 * p + 1][v] = HighHalves(even, odd);
      }
    }
    EndBand<kNr>(band, by_row, rows);
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonI8mm = {
    .name = "int8_gemm_neon_i8mm",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_i8mm = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<NeonI8mm, kNr>},
};

}  // namespace optfarm::runtime
