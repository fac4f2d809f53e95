// A sum of two quantized tensors that is quantized again: QuantizedAdd, what
// follows it and Requantize (fusion/int8_sum.h) as one linear function, where
// it gives what the steps give for each of the 65536 pairs of values.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINEAR_SUM_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINEAR_SUM_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_stage.h"

namespace optfarm::runtime {

// zero + a * step_a + b * step_b, which fits in 32 bits.
struct Int8Line {
  int32_t zero = 0;
  int32_t step_a = 0;
  int32_t step_b = 0;
};

// The line for these stages behind the sum. Nothing when none is found: then
// the stages have to be run.
std::optional<Int8LinearSum> FindLinearSum(const Int8Line& line,
                                           const std::vector<Int8Stage>& stages,
                                           const Int8StageFunctions& functions);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_INT8_LINEAR_SUM_H_
