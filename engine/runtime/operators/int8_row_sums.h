// The sums of the activations under each window of an int8 convolution, which
// the zero point of the weights is multiplied by.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROW_SUMS_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROW_SUMS_H_

#include <cstdint>

#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/int8_gemm.h"

namespace optfarm::runtime {

// Finds sums[r] for each row of the GEMM, padding included. A pixel is
// summed once, however many windows cover it. What it throws is ScratchBytes'.
// REQUIRES: no depthwise convolution.
void SumInt8Rows(const Int8Gemm& gemm, ThreadPool* pool, int32_t* sums);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_ROW_SUMS_H_
