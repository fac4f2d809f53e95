// int8 GEMM with NEON as every Arm of the last fifteen years has it.
//
// 64-bit: bytes are multiplied into 16 bits, two products a lane, which are
// added in pairs to sums of 32 bits: eight products for one and a half
// instructions. Activations are less 128, so that they are signed. Two products
// fit in 16 bits where no weight is -128: 2 * 128 * 127 = 32512. Panels with
// such a weight (Int8GemmTile::has_least_weight) have their products added one
// by one.
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

constexpr int kMr = 12, kNr = 32, kKr = 16;
constexpr int32_t kShift = 128;
constexpr uint32_t kEpilogue = kStoresAccumulators | kRequantizes;
constexpr auto kLayout = ActivationLayout::kPacked;

struct Neon {
  static constexpr int kBandRows = 4;
  // All: a band is made of blocks of four channels, which share its beginning.
  static constexpr int kBandChannels = kNr;
  static constexpr int kBlock = 4;

  // Sums of sixteen products, four lanes each, of row r and channel c.
  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][kBlock];
  };

  // Sixteen products for each channel, two in a lane of 16 bits. Written out,
  // so that no instruction waits for the one before. The first add to nothing.
  template <bool kIsFirst>
  static OPTFARM_INLINE void AddPairs(int8x16_t values,
                                      const int8x16_t* columns,
                                      int32x4_t* sums) {
    int16x8_t pairs[kBlock];
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
    for (int c = 0; c < kBlock; ++c) {
      sums[c] =
          kIsFirst ? vpaddlq_s16(pairs[c]) : vpadalq_s16(sums[c], pairs[c]);
    }
  }
  // The same where two products may not fit.
  template <bool kIsFirst>
  static OPTFARM_INLINE void AddSingly(int8x16_t values,
                                       const int8x16_t* columns,
                                       int32x4_t* sums) {
#pragma GCC unroll 4
    for (int c = 0; c < kBlock; ++c) {
      const int16x8_t low =
          vmull_s8(vget_low_s8(values), vget_low_s8(columns[c]));
      const int16x8_t high = vmull_high_s8(values, columns[c]);
      sums[c] = kIsFirst ? vpaddlq_s16(low) : vpadalq_s16(sums[c], low);
      sums[c] = vpadalq_s16(sums[c], high);
    }
  }

  template <int kRows, bool kInPairs, bool kIsFirst>
  static OPTFARM_INLINE void AddChunk(const int8_t** packed,
                                      const int8_t** weights,
                                      Sums<kRows>* sums) {
    int8x16_t values[kRows], columns[kBlock];
    LoadFourAndMove(weights, kNr * kKr, columns);
    if constexpr (kRows == 4) {
      LoadFourAndMove(packed, 4 * kKr, values);
    } else {
      LoadVectors(packed, values);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kInPairs) {
        AddPairs<kIsFirst>(values[r], columns, sums->of[r]);
      } else {
        AddSingly<kIsFirst>(values[r], columns, sums->of[r]);
      }
    }
  }

  // The chunks of a band's rows: the first, perhaps a second, and pairs of
  // chunks behind. No convolution is without depth.
  struct Rows {
    const int8_t* packed;
    const int8_t* end;
    bool has_second;
  };
  template <int kRows, bool kInPairs>
  static OPTFARM_INLINE void AddAll(const Rows& rows, const int8_t* weights,
                                    Sums<kRows>* sums) {
    const int8_t* packed = rows.packed;
    AddChunk<kRows, kInPairs, true>(&packed, &weights, sums);
    if (kInPairs && rows.has_second) {
      AddChunk<kRows, kInPairs, false>(&packed, &weights, sums);
    }
    while (packed != rows.end) {
      AddChunk<kRows, kInPairs, false>(&packed, &weights, sums);
      if constexpr (kInPairs) {
        AddChunk<kRows, kInPairs, false>(&packed, &weights, sums);
      }
    }
  }

  template <int kRows>
  static void Pack(const Int8Band& band, int64_t first_tap) {
    PackSigned<kKr, kRows>(band, first_tap);
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
    const int64_t depth = band.tile.WholeDepth(kKr);
    const auto* const packed = reinterpret_cast<const int8_t*>(band.packed());
    const Rows rows = {packed, packed + depth * kRows, depth / kKr % 2 == 0};
    const bool has_row_init = band.tile.has_row_init;
    const int8_t* weights = band.tile.weights;
    const int32_t* init = band.tile.init;
    const Int8Epilogue* const by = band.tile.epilogue;
    const RowsEpilogueNeon epilogue(by == nullptr ? Int8Epilogue() : *by);
    const int all = by == nullptr || by->channels > kNr ? kNr : by->channels;
    const float* scales = by == nullptr ? nullptr : by->scales;
    int32_t* stored = band.tile.out + band.row * kNr;
    // What is behind the last channel has no place in the result.
    uint8_t some[kBlock * kRows];
    uint8_t* const begin =
        by == nullptr ? some : by->out + band.row * by->stride;
    const int64_t stride = by == nullptr ? 0 : by->stride;
    uint8_t* out[kRows];
    PointTo(begin, stride, out);
    const int left = all % kBlock;
    int whole = all / kBlock;
    do {
      if (whole == 0) PointTo(some, kBlock, out);
      do {
        Sums<kRows> sums;
        AddAll<kRows, kInPairs>(rows, weights, &sums);
        int32x4_t by_row[kBandRows];
        JoinLanes(sums, vld1q_s32(init), by_row);
        if (has_row_init) AddRowInits<kRows>(band, by_row);
        weights += kBlock * kKr;
        init += kBlock;
        if (scales != nullptr) [[likely]] {
          StoreRows<0, kRows>(epilogue.Quantize(vld1q_f32(scales), by_row),
                              out);
          scales += kBlock;
        } else {
          StoreAll<kRows>(by_row, stored);
          stored += kBlock;
        }
      } while (--whole > 0);
    } while (whole == 0 && left > 0);
    if (left > 0) CopySome(some, kRows, left, stride, begin + all - left);
  }

  template <int kRows>
  static OPTFARM_INLINE void PointTo(uint8_t* to, int64_t stride,
                                     uint8_t* (&out)[kRows]) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) out[r] = to + r * stride;
  }

  // The sums of four channels; rows that do not exist are the last one.
  template <int kRows>
  static OPTFARM_INLINE void JoinLanes(const Sums<kRows>& sums, int32x4_t init,
                                       int32x4_t (&by_row)[kBandRows]) {
#pragma GCC unroll 4
    for (int r = 0; r < kBandRows; ++r) {
      const int32x4_t* of = sums.of[r < kRows ? r : kRows - 1];
      by_row[r] = vaddq_s32(
          vpaddq_s32(vpaddq_s32(of[0], of[1]), vpaddq_s32(of[2], of[3])), init);
    }
  }
  template <int kRows>
  static OPTFARM_INLINE void AddRowInits(const Int8Band& band,
                                         int32x4_t (&by_row)[kBandRows]) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      by_row[r] =
          vaddq_s32(by_row[r], vdupq_n_s32(band.tile.row_init[band.row + r]));
    }
  }
  template <int kRows>
  static OPTFARM_INLINE void StoreAll(const int32x4_t (&by_row)[kBandRows],
                                      int32_t* to) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) vst1q_s32(to + r * kNr, by_row[r]);
  }

  // A vector's lanes to a place each, which is moved on.
  template <int kRow, int kRows>
  static OPTFARM_INLINE void StoreRows(uint8x16_t values,
                                       uint8_t* (&out)[kRows]) {
    if constexpr (kRow == 0) {
      asm volatile("str %s1, [%0], #4" : "+r"(out[0]) : "w"(values) : "memory");
    } else {
      asm volatile("st1 {%1.s}[%c2], [%0], #4"
                   : "+r"(out[kRow])
                   : "w"(values), "i"(kRow)
                   : "memory");
    }
    if constexpr (kRow + 1 < kRows) StoreRows<kRow + 1, kRows>(values, out);
  }

  // Fewer than kBlock channels of each row.
  OPTFARM_NOINLINE static void CopySome(const uint8_t* some, int rows,
                                        int channels, int64_t stride,
                                        uint8_t* out) {
    for (int r = 0; r < rows; ++r, out += stride) {
      for (int c = 0; c < channels; ++c) out[c] = some[r * kBlock + c];
    }
  }
};

#else

constexpr int kMr = 12, kNr = 32, kKr = 4;
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
    .panel = {.nr = kNr, .kr = kKr},
    .activations = kLayout,
    .pack = kPack,
    .activation_shift = kShift,
    .epilogue = kEpilogue,
    .run = {.int8_gemm = RunInt8Bands<Neon, kNr>},
};

}  // namespace optfarm::runtime
