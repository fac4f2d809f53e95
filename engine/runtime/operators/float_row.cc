#include "engine/runtime/operators/float_row.h"

#include <algorithm>
#include <cstring>

#include "engine/runtime/core/scratch.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kFloat = sizeof(float);
// UNITS: bytes of the matrix that are read before it is told.
constexpr int64_t kSlabBytes = 512 * 1024;
// UNITS: columns. Sums of a part are near the processor while its rows pass.
constexpr int64_t kGrain = 64;
// Rows that are copied together where floats do not stand at their places.
constexpr int64_t kCopiedRows = 8;

// Some rows of some columns.
struct Part {
  int64_t row_begin;
  int64_t row_end;
  int64_t column_begin;
  int64_t column_end;
};

const char* PlaceOf(const StoredMatrix& matrix, int64_t row, int64_t column) {
  return static_cast<const char*>(matrix.data) +
         kFloat * (row * matrix.columns + column);
}

void AddPart(const FloatTiles& tiles, const float* row,
             const StoredMatrix& matrix, const Part& part, float* sums) {
  FloatRows rows;
  rows.columns = part.column_end - part.column_begin;
  sums += part.column_begin;
  if (reinterpret_cast<uintptr_t>(matrix.data) % alignof(float) == 0) {
    rows.inputs = row + part.row_begin;
    rows.count = part.row_end - part.row_begin;
    rows.weights = reinterpret_cast<const float*>(
        PlaceOf(matrix, part.row_begin, part.column_begin));
    rows.row_stride = matrix.columns;
    return tiles.add_rows(rows, sums);
  }
  const Scratch<float> copy(kCopiedRows * rows.columns);
  rows.weights = copy.data();
  rows.row_stride = rows.columns;
  for (int64_t k = part.row_begin; k < part.row_end; k += kCopiedRows) {
    rows.inputs = row + k;
    rows.count = std::min(kCopiedRows, part.row_end - k);
    for (int64_t i = 0; i < rows.count; ++i) {
      std::memcpy(copy.data() + i * rows.columns,
                  PlaceOf(matrix, k + i, part.column_begin),
                  static_cast<size_t>(kFloat * rows.columns));
    }
    tiles.add_rows(rows, sums);
  }
}

}  // namespace

void MultiplyStoredRow(const FloatTiles& tiles, const float* row,
                       const StoredMatrix& matrix, WeightLayout::Done done,
                       float* sums, ThreadPool* pool) {
  std::fill_n(sums, matrix.columns, 0.0f);
  const int64_t slab = 1 + kSlabBytes / (kFloat * matrix.columns);
  const int64_t parts = kGrain * pool->threads();
  const int64_t share = (matrix.columns + parts - 1) / parts * kGrain;
  for (int64_t k = 0; k < matrix.depth; k += slab) {
    const int64_t last = std::min(k + slab, matrix.depth);
    pool->ParallelFor(matrix.columns, share, [&](int64_t begin, int64_t end) {
      AddPart(tiles, row, matrix, {k, last, begin, end}, sums);
    });
    done(kFloat * matrix.columns * last);
  }
}

}  // namespace optfarm::runtime
