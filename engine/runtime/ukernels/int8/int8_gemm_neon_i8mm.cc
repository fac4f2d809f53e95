// int8 GEMM with usmmla, Arm's product of 2x8 unsigned by 8x2 signed bytes: two
// rows of activations by two channels at a time, unsigned activations as they
// are. Pairs of rows are laid side by side once for all panels.

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
  static constexpr int kGroups = kChunk / kKr;
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
  static OPTFARM_INLINE void AddBlock(int8x16_t rows, int8x16_t channels,
                                      int32x4_t* sum) {
    asm volatile("usmmla %0.4s, %1.16b, %2.16b"
                 : "+w"(*sum)
                 : "w"(rows), "w"(channels));
  }

  // Group kGroup of a chunk by two pairs of channels. The last weights that are
  // loaded, those of the first group, move `weights` on.
  template <int kGroup, int kFirst, int kPairs>
  static OPTFARM_INLINE void AddTwo(const int8x16_t (&rows)[2 * kPairs],
                                    const int8_t** weights,
                                    Sums<kPairs>* sums) {
    int8x16_t low, high;
    if constexpr (kGroup == 0 && kFirst == 0) {
      LoadTwoAndMove<kGroups * kStep>(weights, &low, &high);
    } else {
      LoadTwo<kGroup * kStep + kFirst * 2 * kKr>(*weights, &low, &high);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      AddBlock(rows[2 * p + kGroup], low, &sums->of[p][kFirst]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < kPairs; ++p) {
      AddBlock(rows[2 * p + kGroup], high, &sums->of[p][kFirst + 1]);
    }
  }

  // `rows`: a chunk, each register with a group of two rows.
  template <int kGroup, int kPairs>
  static OPTFARM_INLINE void AddGroup(const int8x16_t (&rows)[2 * kPairs],
                                      const int8_t** weights,
                                      Sums<kPairs>* sums) {
    AddTwo<kGroup, 6>(rows, weights, sums);
    AddTwo<kGroup, 4>(rows, weights, sums);
    AddTwo<kGroup, 2>(rows, weights, sums);
    AddTwo<kGroup, 0>(rows, weights, sums);
  }

  template <int kPairs>
  static OPTFARM_INLINE void AddAll(const Int8Band& band, Sums<kPairs>* sums) {
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    const auto* packed = reinterpret_cast<const int8_t*>(band.packed());
    const int64_t depth = band.tile.WholeDepth(kKr);
    const int8_t* const end = packed + depth / kChunk * kChunk * 2 * kPairs;
    int8x16_t rows[2 * kPairs];
    while (packed != end) {
      LoadVectors(&packed, rows);
      AddGroup<1>(rows, &weights, sums);
      AddGroup<0>(rows, &weights, sums);
    }
    if (depth % kChunk == 0) return;
    LoadVectors(&packed, rows);
    AddGroup<0>(rows, &weights, sums);
  }

  // Copies a band's activations: chunk by chunk, in each two rows at a time,
  // first group by first, then second by second. An odd number of rows has its
  // last one twice.
  template <int kRows>
  static void Pack(const Int8Band& band, int64_t first_tap) {
    PackPairs<(kRows + 1) / 2>(band, kRows, first_tap);
  }
  template <int kPairs>
  OPTFARM_NOINLINE static void PackPairs(const Int8Band& band, int rows,
                                         int64_t first_tap) {
    uint8_t* packed = band.packed();
    int64_t at = first_tap * band.tile.depth;
    for (int64_t tap = first_tap; tap < band.tile.all_taps(); ++tap) {
      const int64_t depth = band.tile.DepthOf(tap, kKr);
      const uint8_t* const* pointers = band.indirection(tap);
      const uint8_t* inputs[2 * kPairs];
#pragma GCC unroll 8
      for (int r = 0; r < 2 * kPairs - 1; ++r) inputs[r] = pointers[r];
      inputs[2 * kPairs - 1] = pointers[rows - 1];
      int64_t k = 0;
      if (at % kChunk == 0) {
        uint8_t* to = packed + at * 2 * kPairs;
        for (; k + kChunk <= depth; k += kChunk) {
#pragma GCC unroll 4
          for (int p = 0; p < kPairs; ++p, to += 2 * kChunk) {
            const uint64x2_t even =
                vreinterpretq_u64_u8(vld1q_u8(inputs[2 * p] + k));
            const uint64x2_t odd =
                vreinterpretq_u64_u8(vld1q_u8(inputs[2 * p + 1] + k));
            vst1q_u8(to, vreinterpretq_u8_u64(vzip1q_u64(even, odd)));
            vst1q_u8(to + kChunk, vreinterpretq_u8_u64(vzip2q_u64(even, odd)));
          }
        }
      }
      for (; k < depth; k += kKr) {
        const int64_t place = at + k;
        uint8_t* to = packed + place / kChunk * kChunk * 2 * kPairs +
                      place % kChunk / kKr * kChunk;
#pragma GCC unroll 1
        for (int p = 0; p < kPairs; ++p, to += 2 * kChunk) {
          vst1_u8(to, vld1_u8(inputs[2 * p] + k));
          vst1_u8(to + kKr, vld1_u8(inputs[2 * p + 1] + k));
        }
      }
      at += depth;
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
    for (int c = 0; c < kChannelPairs; c += 2) {
      const int32x4_t init = vld1q_s32(band.tile.init + band.channel + 2 * c);
      const int32x4_t low = LowHalves(init, init);
      const int32x4_t high = HighHalves(init, init);
#pragma GCC unroll 4
      for (int p = 0; p < kPairs; ++p) {
        sums.of[p][c] = low;
        sums.of[p][c + 1] = high;
      }
    }
    AddAll(band, &sums);
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
    if (band.tile.has_row_init) {
#pragma GCC unroll 8
      for (int r = 0; r < 2 * kPairs; ++r) {
        AddRowInit(band, r < rows ? r : rows - 1, by_row[r]);
      }
    }
    BandEnd<kNr>(band).End(band.channel, by_row, rows);
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonI8mm = {
    .name = "int8_gemm_neon_i8mm",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_i8mm = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activations = ActivationLayout::kPacked,
    .pack = PackInt8Bands<NeonI8mm>,
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<NeonI8mm, kNr>},
};

}  // namespace optfarm::runtime
