// int8 GEMM with sdot, Arm's dot product of four signed bytes, on activations
// less 128.
//
// Sixteen values of a row are loaded at a time and multiplied lane by lane: 24
// registers hold sums, 6 activations and 2 weights. Rows are made signed, and
// laid side by side, once for all panels.

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

constexpr int kMr = 12, kNr = 32, kKr = 4;

struct NeonDot {
  static constexpr int kBandRows = 6;
  // All: a band is made of blocks of sixteen channels, which share what is
  // found of its rows.
  static constexpr int kBandChannels = kNr;
  static constexpr int kBlock = 16;
  static constexpr int kVectors = kBlock / 4;
  static constexpr int kGroups = 4;
  static constexpr int kStep = kNr * kKr;

  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][kVectors];
  };

  // In the order in which it is written (LoadTwo).
  template <int kGroup>
  static OPTFARM_INLINE void AddDot(int8x16_t weights, int8x16_t values,
                                    int32x4_t* sum) {
    asm volatile("sdot %0.4s, %1.16b, %2.4b[%c3]"
                 : "+w"(*sum)
                 : "w"(weights), "w"(values), "i"(kGroup));
  }

  // Group kGroup of the four in `values`, two vectors of weights at a time. The
  // last that are loaded, those of the first group, move `weights` on.
  template <int kRows, int kGroup, int kVector>
  static OPTFARM_INLINE void AddVectors(const int8x16_t (&values)[kRows],
                                        const int8_t** weights,
                                        Sums<kRows>* sums) {
    int8x16_t low, high;
    if constexpr (kGroup == 0 && kVector == 0) {
      LoadTwoAndMove<kGroups * kStep>(weights, &low, &high);
    } else {
      LoadTwo<kGroup * kStep + kVector * 16>(*weights, &low, &high);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      AddDot<kGroup>(low, values[r], &sums->of[r][kVector]);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      AddDot<kGroup>(high, values[r], &sums->of[r][kVector + 1]);
    }
  }
  template <int kRows, int kGroup>
  static OPTFARM_INLINE void AddGroup(const int8x16_t (&values)[kRows],
                                      const int8_t** weights,
                                      Sums<kRows>* sums) {
    AddVectors<kRows, kGroup, 2>(values, weights, sums);
    AddVectors<kRows, kGroup, 0>(values, weights, sums);
  }

  template <int kRows>
  static OPTFARM_INLINE void AddChunk(const int8_t** packed,
                                      const int8_t** weights,
                                      Sums<kRows>* sums) {
    int8x16_t values[kRows];
    LoadVectors(packed, values);
    AddGroup<kRows, 3>(values, weights, sums);
    AddGroup<kRows, 2>(values, weights, sums);
    AddGroup<kRows, 1>(values, weights, sums);
    AddGroup<kRows, 0>(values, weights, sums);
  }

  // Whole chunks of rows up to `end`, and some groups of four values behind.
  template <int kRows>
  static OPTFARM_INLINE void AddAll(const int8_t* packed, const int8_t* end,
                                    uint64_t groups, const int8_t* weights,
                                    Sums<kRows>* sums) {
    if ((end - packed) / (kChunk * kRows) % 2 != 0) {
      AddChunk<kRows>(&packed, &weights, sums);
    }
    while (packed != end) {
      AddChunk<kRows>(&packed, &weights, sums);
      AddChunk<kRows>(&packed, &weights, sums);
    }
    if (groups == 0) return;
    int8x16_t values[kRows];
    LoadVectors(&packed, values);
    if (groups > 2) AddGroup<kRows, 2>(values, &weights, sums);
    if (groups > 1) AddGroup<kRows, 1>(values, &weights, sums);
    AddGroup<kRows, 0>(values, &weights, sums);
  }

  template <int kRows>
  static void Pack(const Int8Band& band, int64_t first_tap) {
    PackSigned<kKr, kRows>(band, first_tap);
  }

  template <int kRows>
  OPTFARM_NOINLINE static void Run(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    const Int8Epilogue* const by = tile.epilogue;
    const int64_t exist = by != nullptr ? by->channels : tile.channels;
    const auto depth = static_cast<uint64_t>(tile.WholeDepth(kKr));
    const auto* const packed = reinterpret_cast<const int8_t*>(band.packed());
    const int8_t* const packed_end = packed + depth / kChunk * kChunk * kRows;
    const uint64_t groups = depth % kChunk / kKr;
    const BandEnd<kNr> end(band);
    const bool has_row_init = tile.has_row_init;
    const int8_t* weights = tile.weights;
    const int32_t* init = tile.init;
    int channel = 0;
    do {
      Sums<kRows> sums;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int32x4_t by_channel = vld1q_s32(init + 4 * v);
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) sums.of[r][v] = by_channel;
      }
      if (has_row_init) {
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) AddRowInit(band, r, sums.of[r]);
      }
      AddAll(packed, packed_end, groups, weights, &sums);
      end.End(channel, sums.of, kRows);
      channel += kBlock;
      weights += kBlock * kKr;
      init += kBlock;
    } while (channel < kNr && channel < exist);
    if (by == nullptr && channel < kNr) {
      ClearRest<kNr>(band, kRows, channel);
    }
  }
};

}  // namespace

constexpr MicroKernel kInt8GemmNeonDot = {
    .name = "int8_gemm_neon_dot",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true, .neon_dot = true},
    .mr = kMr,
    .panel = {.nr = kNr, .kr = kKr},
    .activations = ActivationLayout::kPacked,
    .pack = PackInt8Bands<NeonDot>,
    .activation_shift = 128,
    .epilogue = kStoresAccumulators | kRequantizes,
    .run = {.int8_gemm = RunInt8Bands<NeonDot, kNr>},
};

}  // namespace optfarm::runtime
