// The right factor of a float product (filters, weights) in the order in which
// tiles read it, and the product itself, tile by tile.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_PANELS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_PANELS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/next_weights.h"
#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

// A matrix of depth x columns, panel by panel; within a panel row by row. The
// last panel is filled up with zeros.
struct FloatPanels {
  const FloatTiles* tiles = nullptr;
  int64_t depth = 0;
  int64_t columns = 0;

  int64_t count() const { return (columns + tiles->width - 1) / tiles->width; }
  // Columns that panel `i` stores.
  int used(int64_t i) const;
  // Columns that it has room for.
  int width(int64_t i) const {
    return used(i) <= tiles->width / 2 ? tiles->width / 2 : tiles->width;
  }
  // UNITS: elements.
  int64_t offset(int64_t i) const { return i * tiles->width * depth; }
  int64_t size() const;
};

// What a product reads first of panels.
FirstWeights FirstPanels(const FloatPanels& panels, PackedWeights packed);

// A matrix as panels, and back. `transposed`: it is stored as columns x depth.
// A buffer may be a constant of several shapes.
WeightLayout LayoutOf(const FloatPanels& panels, bool transposed);

// A matrix wherever it lies in a tensor.
// UNITS: elements from one row, or one column, to the next.
struct StridedMatrix {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 0;
};

// A matrix, times `scale`, as panels. `packed` has room for panels.size().
void PackMatrix(const FloatPanels& panels, const StridedMatrix& matrix,
                float scale, float* packed);

// Values for each column, with zeros for all that panels have room for. Nothing
// of nothing.
std::vector<float> PadColumns(const FloatPanels& panels,
                              const std::vector<float>& values);

// Rows (pixels) times panels.
struct FloatProduct {
  FloatPanels panels;
  const float* packed = nullptr;
  // As PadColumns makes them; nullptr for none.
  const float* scale = nullptr;
  const float* bias = nullptr;
  // rows x columns, like `out`; nullptr for none. May be `out` itself.
  const float* residual = nullptr;
  float* out = nullptr;
  // UNITS: elements from one row of `out` to the next.
  int64_t row_stride = 0;
  Rectifier rectifier = Rectifier::kNone;
  int64_t rows = 0;
  // taps * run is the panels' depth.
  int64_t taps = 1;
  int64_t run = 0;
  // UNITS: bytes of input that a row has for itself, to choose blocks by.
  int64_t row_bytes = 0;
  // UNITS: elements that `fill` may write for a row.
  int64_t scratch = 0;
  // What comes after the product; nullptr for what is not known.
  const FirstWeights* next = nullptr;
};

// What thread `thread` of `threads` is to fetch before the product is done.
FirstWeights::Place NextOf(const FloatProduct& product, int64_t thread,
                           int64_t threads);

// Says where the inputs of rows [first, first + count) stand:
// to[tap * count + row]. `scratch` is good until the rows are done.
using FillIndirection = absl::FunctionRef<void(
    int64_t first, int count, float* scratch, const float** to)>;

// Computes the product, split over threads; the result does not depend on how
// many there are.
void MultiplyPanels(const FloatProduct& product, FillIndirection fill,
                    ThreadPool* pool);

// The same on the caller's thread alone; `next` is fetched by the last tiles.
void MultiplyPanelsAlone(const FloatProduct& product, FillIndirection fill,
                         FirstWeights::Place next);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_PANELS_H_
