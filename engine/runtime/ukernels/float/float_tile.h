// The heart of float convolutions and matrix products: one tile of the result,
// some rows (pixels) by one panel of columns (filters), kept in registers while
// all products are added. Rows are read through pointers, so that a
// convolution's patches need not be copied together; weights are packed panel
// by panel, in the order in which they are read. Bias, a residual and the
// rectifier are applied before the tile is stored.
//
// Sums are added in the order of the weights with one rounding for each
// product, whatever the tile's height: results do not depend on how the work is
// split.
//
// This header is included by files that are compiled for one instruction set,
// and stays free of code.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_H_

#include <cstdint>

namespace optfarm::runtime {

// What happens to a sum before it is stored. NaN stays NaN.
enum class Rectifier : uint8_t { kNone, kRelu, kRelu6 };

struct FloatTile {
  // By tap and row: where `run` inputs stand. `rows` pointers for each tap.
  const float* const* inputs = nullptr;
  int rows = 0;
  int64_t taps = 0;
  // Inputs at each pointer.
  int64_t run = 0;
  // taps * run rows of one panel's weights.
  const float* weights = nullptr;
  // Of one panel: what sums are multiplied by before the bias is added; nullptr
  // for nothing.
  const float* scale = nullptr;
  // Of one panel; nullptr for none.
  const float* bias = nullptr;
  // As `out`; nullptr for none. May be `out` itself.
  const float* residual = nullptr;
  float* out = nullptr;
  // UNITS: elements from one row of `out` and `residual` to the next.
  int64_t row_stride = 0;
  // Columns to store: 1 up to the panel's width.
  int columns = 0;
  Rectifier rectifier = Rectifier::kNone;
  // What is read soon: `prefetch_step` bytes further for each weight row.
  const char* prefetch = nullptr;
  int64_t prefetch_step = 0;
};

// Rows of a matrix as it is stored.
struct FloatRows {
  const float* inputs = nullptr;
  int64_t count = 0;
  const float* weights = nullptr;
  // UNITS: elements from one row of weights to the next.
  int64_t row_stride = 0;
  int64_t columns = 0;
};

// Tiles of one instruction set.
struct FloatTiles {
  // Rows of the highest tile.
  int rows;
  // Columns of a panel. The last panel is half as wide where that is enough.
  int width;
  // REQUIRES: 1 <= tile.rows <= rows; columns <= width.
  void (*wide)(const FloatTile& tile);
  // The same for a panel of half the width.
  void (*narrow)(const FloatTile& tile);
  // One row by up to kRowPanels panels side by side, the weights of which stand
  // `panel_stride` elements from one another: a single row has too few sums in
  // one panel to keep the processor busy. The last panel may be half as wide.
  // REQUIRES: tile.rows == 1; 1 <= tile.columns <= kRowPanels * width.
  void (*row)(const FloatTile& tile, int64_t panel_stride);
  // Adds the products of `count` inputs with as many rows of weights to sums:
  // weights that are not packed, and may stand at any byte.
  void (*add_rows)(const FloatRows& rows, float* sums);
};

inline constexpr int kRowPanels = 6;
// No set's tiles are higher or wider.
inline constexpr int kMostTileRows = 16;
inline constexpr int kMostTileColumns = 32;

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_H_
