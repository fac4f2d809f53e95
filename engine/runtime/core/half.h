// The two narrow floats, IEEE binary16 (half) and bfloat16, which tensors keep
// as their 16 bits, to and from float. Rounding goes to the nearest, halves to
// the even neighbour; a NaN stays one, of bfloat16 the quiet one of its sign.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_HALF_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_HALF_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float BfloatToFloat(uint16_t bits);
uint16_t FloatToBfloat(float value);

// half or bfloat16.
inline bool IsHalf(DataType dtype) {
  return dtype == tensorflow::DT_HALF || dtype == tensorflow::DT_BFLOAT16;
}

// REQUIRES: IsHalf(in.dtype()).
absl::StatusOr<Tensor> HalfAsFloat(const Tensor& in);
// REQUIRES: a float tensor; IsHalf(to).
absl::StatusOr<Tensor> FloatAsHalf(const Tensor& in, DataType to);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_HALF_H_
