#include "engine/runtime/reference/linear_algebra/matrix_product.h"

#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace optfarm::runtime {
namespace {

// UNITS: multiply-adds worth handing to another thread.
constexpr int64_t kGrain = 64 * 1024;
// UNITS: multiply-adds that may go on after their run was ended.
constexpr int64_t kUninterrupted = int64_t{1} << 28;

template <typename T>
using Matrix =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using Stride = Eigen::OuterStride<Eigen::Dynamic>;
template <typename T>
using ConstMap = Eigen::Map<const Matrix<T>, 0, Stride<T>>;
template <typename T>
using OutMap = Eigen::Map<Matrix<T>, 0, Stride<T>>;

// The storage of a factor.
template <typename T>
ConstMap<T> Stored(const Factor<T>& f) {
  return f.transposed
             ? ConstMap<T>(f.data, f.columns, f.rows, Stride<T>(f.rows))
             : ConstMap<T>(f.data, f.rows, f.columns, Stride<T>(f.columns));
}

// The block below of integers, which wrap around. Loops will do: Eigen's
// product would be much code for each of seven types that are seldom
// multiplied.
template <typename T>
void MultiplyIntegers(const Factor<T>& a, const Factor<T>& b, int64_t row,
                      int64_t rows, int64_t column, int64_t columns, T* out) {
  // Wide enough not to become a signed integer in a product.
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const int64_t step_k = b.transposed ? 1 : b.columns;
  const int64_t step_c = b.transposed ? b.rows : 1;
  for (int64_t r = row; r < row + rows; ++r) {
    T* to = out + r * b.columns + column;
    std::fill_n(to, columns, T(0));
    for (int64_t k = 0; k < a.columns; ++k) {
      const auto left = static_cast<Word>(
          a.transposed ? a.data[k * a.rows + r] : a.data[r * a.columns + k]);
      const T* right = b.data + k * step_k + column * step_c;
      for (int64_t c = 0; c < columns; ++c) {
        to[c] = static_cast<T>(static_cast<Word>(to[c]) +
                               left * static_cast<Word>(right[c * step_c]));
      }
    }
  }
}

// Rows [row, row + rows) and columns [column, column + columns) of the result.
template <typename T>
void MultiplyBlock(const Factor<T>& a, const Factor<T>& b, int64_t row,
                   int64_t rows, int64_t column, int64_t columns, T* out) {
  if constexpr (std::is_integral_v<T>) {
    return MultiplyIntegers(a, b, row, rows, column, columns, out);
  } else {
    OutMap<T> c(out + row * b.columns + column, rows, columns,
                Stride<T>(b.columns));
    const ConstMap<T> sa = Stored(a);
    const ConstMap<T> sb = Stored(b);
    const auto with_b = [&](const auto& left) {
      if (b.transposed) {
        c.noalias() = left * sb.middleRows(column, columns).transpose();
      } else {
        c.noalias() = left * sb.middleCols(column, columns);
      }
    };
    if (a.transposed) {
      with_b(sa.middleCols(row, rows).transpose());
    } else {
      with_b(sa.middleRows(row, rows));
    }
  }
}

}  // namespace

template <typename T>
void MultiplyOnOneThread(const Factor<T>& a, const Factor<T>& b, T* out) {
  if (a.rows == 0 || b.columns == 0) return;
  if (a.columns == 0) {
    std::fill_n(out, a.rows * b.columns, T(0));
    return;
  }
  MultiplyBlock(a, b, 0, a.rows, 0, b.columns, out);
}

template <typename T>
void Multiply(const Factor<T>& a, const Factor<T>& b, ThreadPool* pool,
              T* out) {
  const bool is_short =
      pool->threads() == 1 && a.rows <= kUninterrupted /
                                            std::max<int64_t>(a.columns, 1) /
                                            std::max<int64_t>(b.columns, 1);
  if (a.rows == 0 || b.columns == 0 || a.columns == 0 || is_short) {
    MultiplyOnOneThread(a, b, out);
    return;
  }
  if (a.rows >= b.columns || a.rows >= 8 * pool->threads()) {
    const int64_t grain = 1 + kGrain / (a.columns * b.columns);
    pool->ParallelFor(
        a.rows, std::max<int64_t>(grain, 4), [&](int64_t begin, int64_t end) {
          MultiplyBlock(a, b, begin, end - begin, 0, b.columns, out);
        });
    return;
  }
  const int64_t grain = 1 + kGrain / (a.columns * a.rows);
  pool->ParallelFor(b.columns, std::max<int64_t>(grain, 16),
                    [&](int64_t begin, int64_t end) {
                      MultiplyBlock(a, b, 0, a.rows, begin, end - begin, out);
                    });
}

#define OPTFARM_INSTANTIATE(T)                                               \
  template void MultiplyOnOneThread(const Factor<T>&, const Factor<T>&, T*); \
  template void Multiply(const Factor<T>&, const Factor<T>&, ThreadPool*, T*)
OPTFARM_INSTANTIATE(float);
OPTFARM_INSTANTIATE(double);
OPTFARM_INSTANTIATE(int32_t);
OPTFARM_INSTANTIATE(int64_t);
OPTFARM_INSTANTIATE(int16_t);
OPTFARM_INSTANTIATE(uint8_t);
OPTFARM_INSTANTIATE(uint16_t);
OPTFARM_INSTANTIATE(uint32_t);
OPTFARM_INSTANTIATE(uint64_t);
OPTFARM_INSTANTIATE(std::complex<float>);
OPTFARM_INSTANTIATE(std::complex<double>);
#undef OPTFARM_INSTANTIATE

}  // namespace optfarm::runtime
