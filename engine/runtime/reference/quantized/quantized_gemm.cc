#include "engine/runtime/reference/quantized/quantized_gemm.h"

// On a processor without SIMD paths gemmlowp's portable code is right too.
#define GEMMLOWP_ALLOW_SLOW_SCALAR_FALLBACK
// Without this gemmlowp stays with SSE4 where the compiler may use AVX2.
#define GEMMLOWP_ENABLE_AVX2
#include <public/gemmlowp.h>

#include <tuple>

namespace optfarm::runtime {
namespace {

// gemmlowp is fastest with its left side row by row and its right side column
// by column. A row-by-row matrix is its own transpose column by column, so the
// product is computed as transpose(b) * transpose(a).
template <gemmlowp::MapOrder kLhsOrder, gemmlowp::MapOrder kRhsOrder>
void Multiply(const QuantizedMatrix& a, const QuantizedMatrix& b, int rows,
              int depth, int columns, int32_t* out) {
  thread_local gemmlowp::GemmContext context;
  context.set_max_num_threads(1);
  const gemmlowp::MatrixMap<const uint8_t, kLhsOrder> lhs(b.values, columns,
                                                          depth);
  const gemmlowp::MatrixMap<const uint8_t, kRhsOrder> rhs(a.values, depth,
                                                          rows);
  gemmlowp::MatrixMap<int32_t, gemmlowp::MapOrder::ColMajor> result(
      out, columns, rows);
  gemmlowp::GemmWithOutputPipeline<uint8_t, int32_t,
                                   gemmlowp::DefaultL8R8BitDepthParams>(
      &context, lhs, rhs, &result, -b.zero, -a.zero, std::make_tuple());
}

}  // namespace

void QuantizedGemm(const QuantizedMatrix& a, const QuantizedMatrix& b,
                   int64_t rows, int64_t depth, int64_t columns, int32_t* out) {
  using gemmlowp::MapOrder;
  const int m = static_cast<int>(rows);
  const int k = static_cast<int>(depth);
  const int n = static_cast<int>(columns);
  if (b.transposed) {
    if (a.transposed) {
      Multiply<MapOrder::RowMajor, MapOrder::RowMajor>(a, b, m, k, n, out);
    } else {
      Multiply<MapOrder::RowMajor, MapOrder::ColMajor>(a, b, m, k, n, out);
    }
  } else if (a.transposed) {
    Multiply<MapOrder::ColMajor, MapOrder::RowMajor>(a, b, m, k, n, out);
  } else {
    Multiply<MapOrder::ColMajor, MapOrder::ColMajor>(a, b, m, k, n, out);
  }
}

}  // namespace optfarm::runtime
