// The float matrix product that all linear kernels share, computed by Eigen and
// split over threads by disjoint parts of the result.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_PRODUCT_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_PRODUCT_H_

#include <cstdint>

#include "engine/runtime/core/thread_pool.h"

namespace optfarm::runtime {

// A matrix in row-major order; `transposed` reads it as its transpose, so that
// rows and columns are those of the factor, not of the storage.
template <typename T>
struct Factor {
  const T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  bool transposed = false;
};

// out = a * b, row-major a.rows x b.columns, on the calling thread.
// REQUIRES: a.columns == b.rows; out overlaps neither.
// T is float, double, int16_t to int64_t, uint8_t to uint64_t, or complex.
template <typename T>
void MultiplyOnOneThread(const Factor<T>& a, const Factor<T>& b, T* out);

// The same, parallel over rows of the result, or over columns when there are
// few rows.
template <typename T>
void Multiply(const Factor<T>& a, const Factor<T>& b, ThreadPool* pool, T* out);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_LINEAR_ALGEBRA_MATRIX_PRODUCT_H_
