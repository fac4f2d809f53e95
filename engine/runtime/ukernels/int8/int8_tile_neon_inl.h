// Tiles for NEON: bands of a few rows and columns, as many as there are
// registers for. Only for files that are compiled for this instruction set.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_NEON_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_NEON_INL_H_

#include <arm_neon.h>

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/int8/int8_tile.h"

namespace optfarm::runtime {
namespace {

// A part of a tile: rows from `row` on, columns from `column` on.
struct NeonBand {
  const Int8Tile& tile;
  // Rows of the whole tile.
  int rows = 0;
  int row = 0;
  int column = 0;
  // What is common to all rows, by column of the tile: made by the first band
  // of rows, added by all.
  int32_t* common = nullptr;

  const int8_t* weights() const { return tile.weights + column * kInt8Group; }
  const uint8_t* const* pixels(int64_t tap) const {
    return tile.pixels + tap * rows + row;
  }
  OPTFARM_INLINE int32x4_t Start(int r, int c) const {
    return vaddq_s32(vld1q_s32(tile.start + column + c),
                     vdupq_n_s32(tile.row_start[row + r]));
  }
  OPTFARM_INLINE void Store(int r, int c, int32x4_t sums) const {
    vst1q_s32(tile.out + (row + r) * kInt8Columns + column + c, sums);
  }
};

// Isa has kMostRows, kColumns and
//   void Run<kRows, kIsFirst>(band)   kIsFirst: of the first rows
template <typename Isa, int kRows>
void RunNeonBandOf(const NeonBand& band, int rows) {
  if (rows == kRows) {
    if (band.row == 0) {
      Isa::template Run<kRows, true>(band);
    } else {
      Isa::template Run<kRows, false>(band);
    }
  } else if constexpr (kRows > 1) {
    RunNeonBandOf<Isa, kRows - 1>(band, rows);
  }
}

template <typename Isa>
void RunNeonBands(const Int8Tile& tile, int rows) {
  int32_t common[kInt8Columns];
  for (int row = 0; row < rows; row += Isa::kMostRows) {
    const int count = rows - row < Isa::kMostRows ? rows - row : Isa::kMostRows;
    for (int column = 0; column < kInt8Columns; column += Isa::kColumns) {
      RunNeonBandOf<Isa, Isa::kMostRows>({tile, rows, row, column, common},
                                         count);
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_INT8_INT8_TILE_NEON_INL_H_
