// A right factor of a product in 4 bits, in the order in which tiles read it
// (ukernels/float/int4_tile.h), and the product itself.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT4_PANELS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT4_PANELS_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/reference/quantized/block_quantization.h"
#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/int4_tile.h"

namespace optfarm::runtime {

// A matrix of depth x columns. Packed, it is the codes of all panels, then
// their scales, then their zero points.
struct Int4Panels {
  const Int4Tiles* tiles = nullptr;
  int64_t depth = 0;
  int64_t columns = 0;
  int64_t block = 0;

  int64_t count() const { return (columns + kInt4Width - 1) / kInt4Width; }
  int64_t groups() const { return (depth + kInt4Group - 1) / kInt4Group; }
  int64_t blocks() const { return (depth + block - 1) / block; }
  // UNITS: bytes.
  int64_t code_bytes() const { return count() * groups() * kInt4Width * 4; }
  int64_t scale_bytes() const { return count() * blocks() * kInt4Width * 4; }
  int64_t size() const { return code_bytes() + scale_bytes() * 5 / 4; }
  // Panel `i` of the packed form.
  Int4Panel At(const void* packed, int64_t i) const;
};

// The matrix that values in blocks are: its depth is the grid's axis. An empty
// one for other grids than those of matrices, and for blocks that are no whole
// groups.
Int4Panels PanelsOf(const BlockGrid& grid, const Int4Tiles* tiles);

// The values of a DequantizeBlocks as panels, with its scales and zero points,
// and back. REQUIRES: grid.Check; panels = PanelsOf(grid).
WeightLayout LayoutOf(const Int4Panels& panels, const BlockGrid& grid,
                      const Tensor& scale, const Tensor& zero_point);

// Rows times panels.
struct Int4Product {
  Int4Panels panels;
  const void* packed = nullptr;
  // For many rows, which are multiplied by unpacked weights; nullptr: none.
  const FloatTiles* float_tiles = nullptr;
  // rows x depth.
  const float* in = nullptr;
  int64_t rows = 0;
  // By column: what sums are multiplied by before the bias is added; nullptr
  // for nothing. With room for whole panels of both kinds.
  const float* scale = nullptr;
  const float* bias = nullptr;
  // rows x columns; nullptr for none. May be `out` itself.
  const float* residual = nullptr;
  float* out = nullptr;
  Rectifier rectifier = Rectifier::kNone;
};

// Columns that Int4Product::scale and bias have room for.
int64_t PaddedColumns(const Int4Panels& panels);

// Whether MultiplyInt4 gives what floats give: sums of inputs that are not
// finite, or 1e30 and more, may overflow before they are scaled. Looks at what
// the product reads alone.
bool MayMultiplyInt4(const Int4Product& product);

// Computes the product, split over threads; the result does not depend on how
// many there are. REQUIRES: MayMultiplyInt4.
void MultiplyInt4(const Int4Product& product, ThreadPool* pool);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT4_PANELS_H_
