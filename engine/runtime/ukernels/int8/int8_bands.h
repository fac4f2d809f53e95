// Tiles for registers of 256 bits: bands of a few rows and 16 columns, as many
// as there are registers for.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_BANDS_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_BANDS_H_

#include <immintrin.h>

#include <cstring>

#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {

// A part of a tile: rows [row, row + kRows), columns [column, column + 16).
struct Int8Band {
  const Int8Tile& tile;
  // Rows of the whole tile.
  int rows = 0;
  int row = 0;
  int column = 0;
};

template <typename Isa, int kRows>
void RunInt8Band(const Int8Band& band) {
  const Int8Tile& tile = band.tile;
  __m256i sums[kRows][2];
  const auto* start =
      reinterpret_cast<const __m256i*>(tile.start + band.column);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const __m256i row = _mm256_set1_epi32(tile.row_start[band.row + r]);
    sums[r][0] = _mm256_add_epi32(_mm256_loadu_si256(start), row);
    sums[r][1] = _mm256_add_epi32(_mm256_loadu_si256(start + 1), row);
  }
  const int8_t* weights = tile.weights + band.column * kInt8Group;
  for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
    const uint8_t* const* pixels = tile.pixels + tap * band.rows + band.row;
    for (int64_t k = 0; k < tile.DepthOf(tap); k += kInt8Group) {
      const typename Isa::Weights low = Isa::Load(weights);
      const typename Isa::Weights high = Isa::Load(weights + 32);
      weights += kInt8Columns * kInt8Group;
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        int32_t group;
        std::memcpy(&group, pixels[r] + k, sizeof(group));
        const typename Isa::Codes codes = Isa::Spread(group);
        sums[r][0] = Isa::Add(sums[r][0], codes, low);
        sums[r][1] = Isa::Add(sums[r][1], codes, high);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    auto* out = reinterpret_cast<__m256i*>(
        tile.out + (band.row + r) * kInt8Columns + band.column);
    _mm256_store_si256(out, sums[r][0]);
    _mm256_store_si256(out + 1, sums[r][1]);
  }
}

template <typename Isa, int kRows>
void RunInt8BandOf(const Int8Band& band, int rows) {
  if (rows == kRows) {
    RunInt8Band<Isa, kRows>(band);
  } else if constexpr (kRows > 1) {
    RunInt8BandOf<Isa, kRows - 1>(band, rows);
  }
}

template <typename Isa>
void RunInt8Bands(const Int8Tile& tile, int rows) {
  for (int row = 0; row < rows; row += Isa::kMostRows) {
    const int count = rows - row < Isa::kMostRows ? rows - row : Isa::kMostRows;
    for (int column = 0; column < kInt8Columns; column += 16) {
      RunInt8BandOf<Isa, Isa::kMostRows>({tile, rows, row, column}, count);
    }
  }
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_BANDS_H_
