// The integer matrix product under QuantizedConv2D and QuantizedMatMul.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_GEMM_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_GEMM_H_

#include <cstdint>

namespace optfarm::runtime {

// One 8-bit factor: its values, how they lie, and their zero point.
struct QuantizedMatrix {
  const uint8_t* values = nullptr;
  // False: row by row. True: column by column.
  bool transposed = false;
  int32_t zero = 0;
};

// out[rows x columns], row by row = sum over k of
//   (a[i,k] - a.zero) * (b[k,j] - b.zero), wrapping in 32 bits.
// a is rows x depth, b is depth x columns. All sizes at least 1.
// THREADS: safe; uses only the calling thread.
void QuantizedGemm(const QuantizedMatrix& a, const QuantizedMatrix& b,
                   int64_t rows, int64_t depth, int64_t columns, int32_t* out);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_GEMM_H_
