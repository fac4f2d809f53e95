// One row times a matrix that is read where it is stored, once, from end to
// end: weights that are not worth being packed.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_ROW_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_ROW_H_

#include <cstdint>

#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

// A matrix of depth x columns floats, which may begin at any byte.
struct StoredMatrix {
  const void* data = nullptr;
  int64_t depth = 0;
  int64_t columns = 0;
};

// sums[c] = the sum over k of row[k] * matrix[k][c], added in the order of k
// with one rounding for each product: what tiles give for packed weights.
// Split over threads; tells `done` what was read.
void MultiplyStoredRow(const FloatTiles& tiles, const float* row,
                       const StoredMatrix& matrix, WeightLayout::Done done,
                       float* sums, ThreadPool* pool);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_FLOAT_ROW_H_
