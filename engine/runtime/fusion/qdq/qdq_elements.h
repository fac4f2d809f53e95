// Ops between DequantizeLinear and QuantizeLinear that compute element by
// element, on quantized values: sums of two tensors, and functions of one as a
// table of what becomes of each value.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_ELEMENTS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_ELEMENTS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "engine/runtime/fusion/qdq/qdq_kernel.h"
#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// The least and the greatest unsigned value of a result.
struct QdqBounds {
  int32_t least = 0;
  int32_t most = 255;
};

// Two tensors and what becomes of their sum or product.
struct QdqPair {
  QdqTensor a;
  QdqTensor b;
  QdqTensor out;
  QdqBounds bounds;
  // Whether halves of a sum go up, and the steps of a and b are rounded to 20
  // bits, as in XNNPACK; else it is exact, and halves go to even numbers.
  bool rounds_up = false;
};

// The sum of two tensors of one shape, rounded once.
std::unique_ptr<QdqKernel> MakeQdqSum(const QdqPair& pair,
                                      const Int8StageFunctions& functions,
                                      QdqSteps steps);

// The product of two tensors of one shape, or of one [n, 1, ..., 1, c] with one
// [n, ..., c], rounded once.
std::unique_ptr<QdqKernel> MakeQdqProduct(const QdqPair& pair, QdqSteps steps);

// By unsigned value of the input, that of the result.
using QdqTable = std::array<uint8_t, 256>;

// What becomes of values of `a` in a sum or product with one of `b`, unsigned.
QdqTable QdqSumTable(const QdqPair& pair, uint8_t b);
QdqTable QdqProductTable(const QdqPair& pair, uint8_t b);

// The table's entry for each value.
std::unique_ptr<QdqKernel> MakeQdqTable(QdqTensor in, QdqTensor out,
                                        const QdqTable& table, QdqSteps steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_ELEMENTS_H_
