// What Conv2D and DepthwiseConv2dNative are given, checked: both read an image
// and a filter of four dimensions and slide the filter's window.

#ifndef OPTFARM_ENGINE_RUNTIME_KERNELS_CONVOLUTION_INPUT_H_
#define OPTFARM_ENGINE_RUNTIME_KERNELS_CONVOLUTION_INPUT_H_

#include "absl/status/statusor.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernels/window.h"
#include "engine/runtime/tensor.h"

namespace optfarm::runtime {

struct ConvolutionInput {
  // [batch, height, width, channels], float, whatever the data format was.
  Tensor image;
  // [height, width, channels, filters or multiplier], float.
  Tensor filter;
  Window window;
};

// Reads inputs 0 and 1.
// ERRORS: InvalidArgument for another number of inputs, another dtype or rank,
// channels that differ, or a window that does not fit; ResourceExhausted when
// there is no memory for the transposed image.
absl::StatusOr<ConvolutionInput> ReadConvolutionInput(
    const KernelContext& context, const WindowAttrs& attrs);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNELS_CONVOLUTION_INPUT_H_
