// 4-bit values with a scale and a zero point for each block of a tensor, chosen
// for the least squared error.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BLOCK_CODES_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BLOCK_CODES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/quantized/block_quantization.h"

namespace optfarm::transforms {

// The inputs of a DequantizeBlocks.
struct BlockCodes {
  runtime::Tensor values;
  // Of half, in the shape that the grid says.
  runtime::Tensor scales;
  runtime::Tensor zero_points;
};

// Values of 4 bits for reals. Each block tries ranges that leave out more or
// less of its ends, and then the scale of least squares for the values that
// came out; 0 stays 0. The same reals give the same codes.
// ERRORS: FailedPrecondition for values that are not finite, or too large for
// scales of 16 bits; ResourceExhausted.
absl::StatusOr<BlockCodes> EncodeBlocks(absl::Span<const float> reals,
                                        const runtime::BlockGrid& grid);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_BLOCK_CODES_H_
