// Tiles with NEON as every ARM of the last fifteen years has it: codes and
// weights are widened to 16 bits and multiplied into sums of 32, so that
// nothing can overflow and unsigned codes need no correction.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_tile_neon_inl.h"

namespace optfarm::runtime {
namespace {

struct Neon {
  static constexpr int kMostRows = 4;
#if defined(__aarch64__)
  static constexpr int kColumns = 16;
#else
  // Half as many registers.
  static constexpr int kColumns = 8;
#endif
  static constexpr int kVectors = kColumns / 8;

  // Sums of eight columns.
  struct Sums {
    int32x4_t low;
    int32x4_t high;
  };

  static OPTFARM_INLINE int16x4_t LoadCodes(const uint8_t* codes) {
    uint32_t group;
    std::memcpy(&group, codes, sizeof(group));
    const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(group));
    return vreinterpret_s16_u16(vget_low_u16(vmovl_u8(bytes)));
  }

  // One place of a group: kRows codes times eight columns.
  template <int kRows, int kPlace>
  static OPTFARM_INLINE void AddPlace(const int16x4_t* codes, int8x8_t weights,
                                      Sums* sums) {
    const int16x8_t wide = vmovl_s8(weights);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      Sums& s = sums[r * kVectors];
      s.low = vmlal_lane_s16(s.low, vget_low_s16(wide), codes[r], kPlace);
      s.high = vmlal_lane_s16(s.high, vget_high_s16(wide), codes[r], kPlace);
    }
  }

  template <int kRows, bool kIsFirst>
  static void Run(const NeonBand& band) {
    Sums sums[kRows * kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      sums[i] = {band.Start(r, c), band.Start(r, c + 4)};
    }
    const int8_t* weights = band.weights();
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      const uint8_t* const* pixels = band.pixels(tap);
      for (int64_t k = 0; k < band.tile.DepthOf(tap); k += kInt8Group) {
        int16x4_t codes[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) codes[r] = LoadCodes(pixels[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          // By place, then by column.
          const int8x8x4_t w = vld4_s8(weights + v * 8 * kInt8Group);
          AddPlace<kRows, 0>(codes, w.val[0], sums + v);
          AddPlace<kRows, 1>(codes, w.val[1], sums + v);
          AddPlace<kRows, 2>(codes, w.val[2], sums + v);
          AddPlace<kRows, 3>(codes, w.val[3], sums + v);
        }
        weights += kInt8Columns * kInt8Group;
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i / kVectors, c = i % kVectors * 8;
      band.Store(r, c, sums[i].low);
      band.Store(r, c + 4, sums[i].high);
    }
  }
};

}  // namespace

void RunInt8TileNeon(const Int8Tile& tile, int rows) {
  RunNeonBands<Neon>(tile, rows);
}

}  // namespace optfarm::runtime
