// Rows of floats times weights of 4 bits in blocks along the depth, unpacked in
// registers: a product that reads a sixth of what floats take.
//
// A weight is (code - zero) * scale, with a scale and a zero point for each
// column of a block. In the order of the depth, with one rounding each:
//
//   sum of a block = fma(row[k], code[k], sum of a block), from 0
//   sum = fma(scale, fma(-zero, sum of the block's row[k], sum of a block),
//   sum)
//
// so that results do not depend on how the work is split.
//
// Some entries leave a code where it stands in its word, which makes it larger
// by a power of two, and want the input smaller by as much: the product is the
// same as long as no input is below 1e-30.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_H_

#include <cstdint>

namespace optfarm::runtime {

// Columns of a panel.
inline constexpr int kInt4Width = 16;
// Codes of one column that stand side by side in a word, the first in its
// lowest bits. Blocks are multiples of it.
inline constexpr int kInt4Group = 8;
// Panels side by side that one row is multiplied by at a time.
inline constexpr int kInt4RowPanels = 4;

// One panel: kInt4Width columns of weights. The next panel's stands behind it
// in each of the three.
struct Int4Panel {
  // By group and column: ceil(depth / kInt4Group) * kInt4Width words.
  const uint32_t* codes = nullptr;
  // By block and column.
  const float* scales = nullptr;
  // By block and column, from 0 to 15.
  const uint8_t* zeros = nullptr;
  int64_t depth = 0;
  // UNITS: weights along the depth; a multiple of kInt4Group. The last block
  // may be shorter.
  int64_t block = 0;
};

struct Int4Tile {
  Int4Panel panel;
  // `rows` pointers to panel.depth floats, scaled as Int4Tiles says.
  const float* const* inputs = nullptr;
  // `rows` pointers to the sum of a row's floats in each block.
  const float* const* sums = nullptr;
  int rows = 0;
  // All kInt4Width columns of each panel are stored.
  float* out = nullptr;
  // UNITS: elements from one row of `out` to the next.
  int64_t row_stride = 0;
};

// Functions of one instruction set.
struct Int4Tiles {
  // Rows of the highest tile.
  int rows;
  // Input k is to be multiplied by the factor k % kInt4Group, a power of two,
  // beforehand; nullptr for inputs as they are.
  const float* input_factors;
  // REQUIRES: 1 <= tile.rows <= rows.
  void (*multiply)(const Int4Tile& tile);
  // One row by kInt4RowPanels panels. REQUIRES: tile.rows == 1.
  void (*multiply_row)(const Int4Tile& tile);
  // The weights of `count` blocks from block `first` on as floats, kInt4Width
  // in a row, a row for each index of the depth. UNITS of `stride`: elements
  // from one row to the next.
  void (*unpack)(const Int4Panel& panel, int64_t first, int64_t count,
                 float* out, int64_t stride);
};

// No set's tiles are higher.
inline constexpr int kMostInt4Rows = 6;

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_H_
