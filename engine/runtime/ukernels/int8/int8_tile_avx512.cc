// Tiles with AVX-512 where it has no dot products of bytes: codes and weights
// widened to 16 bits and multiplied in pairs, as with AVX2, in registers twice
// as wide.

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_finish_avx512_inl.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

// Places 0 and 2 of each group, and places 1 and 3, in 16 bits each.
struct Pairs {
  __m512i even;
  __m512i odd;
};

OPTFARM_INLINE Pairs Widen(const int8_t* weights) {
  const __m512i all = _mm512_load_si512(weights);
  return {_mm512_srai_epi16(_mm512_slli_epi16(all, 8), 8),
          _mm512_srai_epi16(all, 8)};
}

OPTFARM_INLINE Pairs Spread(const uint8_t* codes) {
  int32_t group;
  std::memcpy(&group, codes, sizeof(group));
  const __m512i all = _mm512_set1_epi32(group);
  return {_mm512_and_si512(all, _mm512_set1_epi16(0xff)),
          _mm512_srli_epi16(all, 8)};
}

OPTFARM_INLINE __m512i Add(__m512i sum, const Pairs& codes,
                           const Pairs& weights) {
  sum = _mm512_add_epi32(sum, _mm512_madd_epi16(codes.even, weights.even));
  return _mm512_add_epi32(sum, _mm512_madd_epi16(codes.odd, weights.odd));
}

// Rows [row, row + kRows) of a tile of `rows`.
template <int kRows>
void RunBand(const Int8Tile& tile, int rows, int row) {
  const __m512i start[2] = {_mm512_loadu_si512(tile.start),
                            _mm512_loadu_si512(tile.start + 16)};
  __m512i sums[kRows][2];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m512i of_row = _mm512_set1_epi32(tile.row_start[row + r]);
    sums[r][0] = _mm512_add_epi32(start[0], of_row);
    sums[r][1] = _mm512_add_epi32(start[1], of_row);
  }
  const int8_t* weights = tile.weights;
  for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
    const uint8_t* const* pixels = tile.pixels + tap * rows + row;
    for (int64_t k = 0; k < tile.DepthOf(tap); k += kInt8Group) {
      const Pairs low = Widen(weights), high = Widen(weights + 64);
      weights += kInt8Columns * kInt8Group;
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const Pairs codes = Spread(pixels[r] + k);
        sums[r][0] = Add(sums[r][0], codes, low);
        sums[r][1] = Add(sums[r][1], codes, high);
      }
    }
  }
  if (tile.finish == nullptr) {
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t* out = tile.out + (row + r) * kInt8Columns;
      _mm512_store_si512(out, sums[r][0]);
      _mm512_store_si512(out + 16, sums[r][1]);
    }
    return;
  }
  Int8Finish by = *tile.finish;
  by.out += row * by.stride;
  FinishAvx512<Packing::kNothing> finish(by);
#pragma GCC unroll 3
  for (int r = 0; r + 1 < kRows; r += 2) {
    finish.Two(sums[r][0], sums[r][1], sums[r + 1][0], sums[r + 1][1]);
  }
  if constexpr (kRows % 2 != 0) {
    finish.One(sums[kRows - 1][0], sums[kRows - 1][1]);
  }
}

constexpr int kMostRows = 6;

}  // namespace

void RunInt8TileAvx512(const Int8Tile& tile, int rows) {
  static constexpr void (*kBands[])(const Int8Tile&, int, int) = {
      RunBand<1>, RunBand<2>, RunBand<3>, RunBand<4>, RunBand<5>, RunBand<6>};
  for (int row = 0; row < rows; row += kMostRows) {
    const int count = rows - row < kMostRows ? rows - row : kMostRows;
    kBands[count - 1](tile, rows, row);
  }
}

}  // namespace optfarm::runtime
