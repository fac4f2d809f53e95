// int8 GEMM with NEON as every Arm of the last fifteen years has it.
//
// 64-bit: bytes are multiplied into 16 bits, two products a lane, which are
// added in pairs to sums of 32 bits: eight products for one and a half
// instructions. Activations are less 128, so that they are signed. Two products
// fit in 16 bits where no weight is -128: 2 * 128 * 127 = 32512. Panels with
// such a weight (Int8GemmTile::has_least_weight) have their products added one
// by one.
//
// Neighbouring lanes are of one channel, which leaves a sum a lane and nothing
// to join at the end. So each activation is multiplied by four channels in one
// instruction, and packing writes it four times.
//
// 32-bit, with half as many registers: activations and weights are widened to
// 16 bits and accumulated in 32, so that nothing can overflow and unsigned
// activations need no correction.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_gemm_neon_inl.h"
#include "engine/runtime/ukernels/micro_kernel.h"

namespace optfarm::runtime {
namespace {

#if defined(__aarch64__)

constexpr int kMr = 12, kNr = 32, kKr = 4;
// Two products of each channel side by side, of four channels in eight bytes.
constexpr PanelLayout kPanel = {.nr = kNr, .kr = kKr, .run = 2, .block = 4};
constexpr int kCopies = 4;
constexpr int32_t kShift = 128;
constexpr uint32_t kEpilogue = kStoresAccumulators | kRequantizes;
constexpr auto kLayout = ActivationLayout::kPacked;

struct Neon {
  static constexpr int kBandRows = 4;
  // All: a band is made of blocks of sixteen channels, which share its
  // beginning.
  static constexpr int kBandChannels = kNr;
  static constexpr int kBlock = 16;
  static constexpr int kVectors = kBlock / 4;
  // Of a row's group: its values for four channels.
  static constexpr int kSpread = kKr * kCopies;

  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][kVectors];
  };

  // Four products for each of sixteen channels, two in a lane of 16 bits.
  // Written out, so that no instruction waits for the one before.
  static OPTFARM_INLINE void AddPairs(int8x16_t values,
                                      const int8x16_t (&columns)[kVectors],
                                      int32x4_t (&sums)[kVectors]) {
    int16x8_t pairs[kVectors];
    asm("smull %0.8h, %4.8b, %5.8b\n"
        "smull %1.8h, %4.8b, %6.8b\n"
        "smull %2.8h, %4.8b, %7.8b\n"
        "smull %3.8h, %4.8b, %8.8b\n"
        "smlal2 %0.8h, %4.16b, %5.16b\n"
        "smlal2 %1.8h, %4.16b, %6.16b\n"
        "smlal2 %2.8h, %4.16b, %7.16b\n"
        "smlal2 %3.8h, %4.16b, %8.16b\n"
        : "=&w"(pairs[0]), "=&w"(pairs[1]), "=&w"(pairs[2]), "=&w"(pairs[3])
        : "w"(values), "w"(columns[0]), "w"(columns[1]), "w"(columns[2]),
          "w"(columns[3]));
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] = vpadalq_s16(sums[v], pairs[v]);
  }
  // The same where two products may not fit.
  static OPTFARM_INLINE void AddSingly(int8x16_t values,
                                       const int8x16_t (&columns)[kVectors],
                                       int32x4_t (&sums)[kVectors]) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = vpadalq_s16(
          sums[v], vmull_s8(vget_low_s8(values), vget_low_s8(columns[v])));
      sums[v] = vpadalq_s16(sums[v], vmull_high_s8(values, columns[v]));
    }
  }

  template <int kRows, bool kInPairs>
  static OPTFARM_INLINE void AddGroup(const int8_t** packed,
                                      const int8_t** weights,
                                      Sums<kRows>* sums) {
    int8x16_t values[kRows], columns[kVectors];
    LoadFourAndMove(weights, kNr * kKr, columns);
    if constexpr (kRows == 4) {
      LoadFourAndMove(packed, 4 * kSpread, values);
    } else {
      LoadVectors(packed, values);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kInPairs) {
        AddPairs(values[r], columns, sums->of[r]);
      } else {
        AddSingly(values[r], columns, sums->of[r]);
      }
    }
  }

  // All groups of a band's rows.
  template <int kRows, bool kInPairs>
  static OPTFARM_INLINE void AddAll(const int8_t* packed, const int8_t* end,
                                    const int8_t* weights, Sums<kRows>* sums) {
    if constexpr (kInPairs && kRows == kBandRows) {
      while ((end - packed) % (4 * kSpread * kRows) != 0) {
        AddGroup<kRows, true>(&packed, &weights, sums);
      }
      while (packed != end) {
        AddGroup<kRows, true>(&packed, &weights, sums);
        AddGroup<kRows, true>(&packed, &weights, sums);
        AddGroup<kRows, true>(&packed, &weights, sums);
        AddGroup<kRows, true>(&packed, &weights, sums);
      }
    } else {
      while (packed != end) {
        AddGroup<kRows, kInPairs>(&packed, &weights, sums);
      }
    }
  }

  // A row's groups, less 128, as AddPairs multiplies them: the first two values
  // four times, then the other two.
  template <int kRows>
  OPTFARM_NOINLINE static void Pack(const Int8Band& band, int64_t first_tap) {
    constexpr int64_t kGroups = kChunk / kKr;
    const uint8x16_t shift = vdupq_n_u8(0x80);
    const uint8x16_t first = {0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3};
    uint8x16_t places[kGroups];
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      places[g] = vaddq_u8(first, vdupq_n_u8(static_cast<uint8_t>(g * kKr)));
    }
    uint8_t* to = band.packed() + first_tap * band.tile.depth * kCopies * kRows;
    for (int64_t tap = first_tap; tap < band.tile.all_taps(); ++tap) {
      const int64_t depth = band.tile.DepthOf(tap, kKr);
      const uint8_t* inputs[kRows];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) inputs[r] = band.indirection(tap)[r];
      int64_t k = 0;
      for (; k + kChunk <= depth; k += kChunk) {
        uint8x16_t values[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          values[r] = veorq_u8(vld1q_u8(inputs[r] + k), shift);
        }
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) to = Spread(values, places[g], to);
      }
      for (; k < depth; k += kKr) {
        uint8x16_t values[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          uint32_t group;
          std::memcpy(&group, inputs[r] + k, sizeof(group));
          values[r] = veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(group)), shift);
        }
        to = Spread(values, places[0], to);
      }
    }
  }
  template <int kRows>
  static OPTFARM_INLINE uint8_t* Spread(const uint8x16_t (&values)[kRows],
                                        uint8x16_t places, uint8_t* to) {
    uint8x16_t spread[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) spread[r] = vqtbl1q_u8(values[r], places);
    StoreVectors(spread, to);
    return to + kSpread * kRows;
  }

  template <int kRows>
  static OPTFARM_INLINE void Run(const Int8Band& band) {
    if (band.tile.has_least_weight) {
      RunAs<kRows, false>(band);
    } else {
      RunAs<kRows, true>(band);
    }
  }

  template <int kRows, bool kInPairs>
  OPTFARM_NOINLINE static void RunAs(const Int8Band& band) {
    const Int8GemmTile& tile = band.tile;
    const Int8Epilogue* const by = tile.epilogue;
    const int64_t exist = by != nullptr ? by->channels : tile.channels;
    const auto* const packed = reinterpret_cast<const int8_t*>(band.packed());
    const int8_t* const packed_end =
        packed + tile.WholeDepth(kKr) * kCopies * kRows;
    const BandEnd<kNr> end(band);
    const bool has_row_init = tile.has_row_init;
    const int8_t* weights = tile.weights;
    const int32_t* init = tile.init;
    int channel = 0;
    do {
      Sums<kRows> sums;
      if (has_row_init) [[unlikely]] {
        LoadInit(init, &sums);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) AddRowInit(band, r, sums.of[r]);
      } else {
        LoadInit(init, &sums);
      }
      AddAll<kRows, kInPairs>(packed, packed_end, weights, &sums);
      end.End(channel, sums.of, kRows);
      channel += kBlock;
      weights += kBlock * kKr;
      init += kBlock;
    } while (channel < kNr && channel < exist);
    if (by == nullptr && channel < kNr) {
      ClearRest<kNr>(band, kRows, channel);
    }
  }

  // The accumulators' init, loaded for each row: compilers would copy it.
  template <int kRows>
  static OPTFARM_INLINE void LoadInit(const int32_t* init, Sums<kRows>* sums) {
    const auto* from = reinterpret_cast<const int8_t*>(init);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      int8x16_t vectors[kVectors];
      LoadTwo<0>(from, &vectors[0], &vectors[1]);
      LoadTwo<32>(from, &vectors[2], &vectors[3]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums->of[r][v] = vreinterpretq_s32_s8(vectors[v]);
      }
    }
  }
};

#else

constexpr int kMr = 12, kNr = 32, kKr = 4;
constexpr PanelLayout kPanel = {.nr = kNr, .kr = kKr};
constexpr int kCopies = 1;
constexpr int32_t kShift = 0;
constexpr uint32_t kEpilogue = kStoresAccumulators;
constexpr auto kLayout = ActivationLayout::kIndirect;

struct Neon {
  static constexpr int kBandRows = 4;
  static constexpr int kBandChannels = 8;
  static constexpr int kVectors = kBandChannels / 8;

  // Accumulators of eight channels.
  struct Sums {
    int32x4_t low;
    int32x4_t high;
  };

  static OPTFARM_INLINE int16x4_t LoadGroup(const uint8_t* values) {
    uint32_t group;
    std::memcpy(&group, values, sizeof(group));
    const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(group));
    return vreinterpret_s16_u16(vget_low_u16(vmovl_u8(bytes)));
  }

  // One place of a group: kRows activations times eight channels.
  template <int kRows, int kPlace>
  static OPTFARM_INLINE void AddPlace(const int16x4_t* values, int8x8_t weights,
                                      Sums* sums) {
    const int16x8_t wide = vmovl_s8(weights);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      Sums& s = sums[r * kVectors];
      s.low = vmlal_lane_s16(s.low, vget_low_s16(wide), values[r], kPlace);
      s.high = vmlal_lane_s16(s.high, vget_high_s16(wide), values[r], kPlace);
    }
  }

  template <int kRows>
  static void Run(const Int8Band& band) {
    Sums sums[kRows * kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      sums[i] = {InitOf(band, r, c), InitOf(band, r, c + 4)};
    }
    const int8_t* weights = band.tile.weights + band.channel * kKr;
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      const uint8_t* const* inputs = band.indirection(tap);
      for (int64_t k = 0; k < band.tile.DepthOf(tap, kKr); k += kKr) {
        int16x4_t values[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) values[r] = LoadGroup(inputs[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          // By place, then by channel.
          const int8x8x4_t w = vld4_s8(weights + v * 8 * kKr);
          AddPlace<kRows, 0>(values, w.val[0], sums + v);
          AddPlace<kRows, 1>(values, w.val[1], sums + v);
          AddPlace<kRows, 2>(values, w.val[2], sums + v);
          AddPlace<kRows, 3>(values, w.val[3], sums + v);
        }
        weights += kNr * kKr;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      StoreAt<kNr>(band, r, c, sums[i].low);
      StoreAt<kNr>(band, r, c + 4, sums[i].high);
    }
  }
};

#endif

#if defined(__aarch64__)
constexpr auto kPack = PackInt8Bands<Neon>;
#else
constexpr decltype(MicroKernel::pack) kPack = nullptr;
#endif

}  // namespace

constexpr MicroKernel kInt8GemmNeon = {
    .name = "int8_gemm_neon",
    .kind = MicroKernelKind::kInt8Gemm,
    .needs = {.neon = true},
    .mr = kMr,
    .panel = kPanel,
    .activations = kLayout,
    .pack = kPack,
    .packed_copies = kCopies,
    .activation_shift = kShift,
    .epilogue = kEpilogue,
    .run = {.int8_gemm = RunInt8Bands<Neon, kNr>},
};

}  // namespace optfarm::runtime
