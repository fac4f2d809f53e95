// The accumulators of the 8-bit layers: convolution, depthwise convolution and
// matrix product of quantized values, in 32-bit integers (formula 8 of
// docs/quantization.md). The plain form of each; anything faster is tested
// against it and gives the same integers.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_PRODUCTS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_PRODUCTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

// 8-bit weights that are ready to be multiplied.
struct QuantizedWeights {
  // As unsigned values, whatever the tensor's type was.
  std::vector<uint8_t> values;
  int32_t zero = 0;
  // One, or one for each output channel.
  std::vector<float> scales;
};

// The largest sum of magnitudes of one channel's weights; channels are the
// first or the last dimension. REQUIRES: channels > 0.
int64_t LargestWeight(const QuantizedWeights& weights, int64_t channels,
                      bool channels_first);

// Reads weights of quint8, or of qint8 whose quantized values are symmetric
// around 0, with the ranges in inputs `min_index` and the next: one, or one for
// each of `channels` output channels. ERRORS: InvalidArgument for another dtype
// or number of ranges, and when channels of quint8 have different zero points.
absl::StatusOr<QuantizedWeights> ReadWeights(const KernelContext& context,
                                             int weights_index, int min_index,
                                             int64_t channels);

// out[n, y, x, o] = sum (image - image_zero)(weights - weights.zero), an NHWC
// image of quint8 with a filter [height, width, in, out].
// ERRORS: InvalidArgument for shapes that do not fit, and for sums that may
// leave 32 bits. So do the others.
absl::StatusOr<Tensor> ConvolveQuantized(KernelContext* context,
                                         const WindowAttrs& attrs,
                                         const Shape& filter,
                                         int32_t image_zero,
                                         const QuantizedWeights& weights);

// The same with a filter [height, width, in, multiplier]: each channel has its
// own filters.
absl::StatusOr<Tensor> ConvolveQuantizedDepthwise(
    KernelContext* context, const WindowAttrs& attrs, const Shape& filter,
    int32_t image_zero, const QuantizedWeights& weights);

// Rows of input 0 times the matrix [depth, columns], or its transpose.
absl::StatusOr<Tensor> MultiplyQuantized(KernelContext* context,
                                         const Shape& matrix, bool transpose_b,
                                         int32_t rows_zero,
                                         const QuantizedWeights& weights);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_QUANTIZED_QUANTIZED_PRODUCTS_H_
