// Tiles with sdot, ARM's dot product of four signed bytes. Codes are unsigned:
// 128 is taken off them, and 128 times the column's weights, summed up by the
// first band of rows, is given back.

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_tile_neon_inl.h"

namespace optfarm::runtime {
namespace {

struct NeonDot {
  static constexpr int kMostRows = 6;
  static constexpr int kColumns = 8;
  static constexpr int kGroups = 4;

  static OPTFARM_INLINE int8x16_t Signed(uint8x16_t codes) {
    return vreinterpretq_s8_u8(veorq_u8(codes, vdupq_n_u8(0x80)));
  }

  template <int kRows>
  struct Sums {
    int32x4_t of[kRows][2];
    // Of -128 times the weights.
    int32x4_t common[2];
  };

  // Group kGroup of the four in `codes`.
  template <int kRows, bool kIsFirst, int kGroup>
  static OPTFARM_INLINE void AddGroup(const int8x16_t* codes,
                                      const int8_t* weights,
                                      Sums<kRows>* sums) {
    const int8x16_t low = vld1q_s8(weights);
    const int8x16_t high = vld1q_s8(weights + 16);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      sums->of[r][0] = vdotq_laneq_s32(sums->of[r][0], low, codes[r], kGroup);
      sums->of[r][1] = vdotq_laneq_s32(sums->of[r][1], high, codes[r], kGroup);
    }
    if constexpr (kIsFirst) {
      const int8x16_t shift = vdupq_n_s8(-128);
      sums->common[0] = vdotq_s32(sums->common[0], low, shift);
      sums->common[1] = vdotq_s32(sums->common[1], high, shift);
    }
  }

  template <int kRows, bool kIsFirst>
  static OPTFARM_INLINE void AddTap(const NeonBand& band, int64_t tap,
                                    const int8_t* weights, Sums<kRows>* sums) {
    constexpr int64_t kStep = kInt8Columns * kInt8Group;
    constexpr int64_t kAtOnce = kGroups * kInt8Group;
    const uint8_t* pixels[kRows];
    for (int r = 0; r < kRows; ++r) pixels[r] = band.pixels(tap)[r];
    const int64_t depth = band.tile.DepthOf(tap);
    int8x16_t codes[kRows];
    int64_t k = 0;
    for (; k + kAtOnce <= depth; k += kAtOnce) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r)
        codes[r] = Signed(vld1q_u8(pixels[r] + k));
      AddGroup<kRows, kIsFirst, 0>(codes, weights, sums);
      AddGroup<kRows, kIsFirst, 1>(codes, weights + kStep, sums);
      AddGroup<kRows, kIsFirst, 2>(codes, weights + 2 * kStep, sums);
      AddGroup<kRows, kIsFirst, 3>(codes, weights + 3 * kStep, sums);
      weights += kGroups * kStep;
    }
    for (; k < depth; k += kInt8Group) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        uint32_t group;
        std::memcpy(&group, pixels[r] + k, sizeof(group));
        codes[r] = Signed(vreinterpretq_u8_u32(vdupq_n_u32(group)));
      }
      AddGroup<kRows, kIsFirst, 0>(codes, weights, sums);
      weights += kStep;
    }
  }

  template <int kRows, bool kIsFirst>
  static void Run(const NeonBand& band) {
    Sums<kRows> sums;
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      sums.of[r][0] = band.Start(r, 0);
      sums.of[r][1] = band.Start(r, 4);
    }
    int32_t* common = band.common + band.column;
    sums.common[0] = sums.common[1] = vdupq_n_s32(0);
    const int8_t* weights = band.weights();
    for (int64_t tap = 0; tap < band.tile.all_taps(); ++tap) {
      AddTap<kRows, kIsFirst>(band, tap, weights, &sums);
      weights += band.tile.DepthOf(tap) * kInt8Columns;
    }
    if constexpr (kIsFirst) {
      vst1q_s32(common, sums.common[0]);
      vst1q_s32(common + 4, sums.common[1]);
    } else {
      sums.common[0] = vld1q_s32(common);
      sums.common[1] = vld1q_s32(common + 4);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      band.Store(r, 0, vsubq_s32(sums.of[r][0], sums.common[0]));
      band.Store(r, 4, vsubq_s32(sums.of[r][1], sums.common[1]));
    }
  }
};

}  // namespace

void RunInt8TileNeonDot(const Int8Tile& tile, int rows) {
  RunNeonBands<NeonDot>(tile, rows);
}

}  // namespace optfarm::runtime
