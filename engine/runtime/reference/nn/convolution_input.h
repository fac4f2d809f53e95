// What Conv2D and DepthwiseConv2dNative are given, checked: both read an image
// and a filter of four dimensions and slide the filter's window.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CONVOLUTION_INPUT_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CONVOLUTION_INPUT_H_

#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

struct ConvolutionInput {
  // [batch, height, width, channels], whatever the data format was.
  Tensor image;
  // [height, width, channels, filters or multiplier]; fewer channels than the
  // image's, which are a multiple, when there are groups.
  Tensor filter;
  Window window;
};

// Reads inputs 0 and 1, both of `dtype`.
// ERRORS: InvalidArgument for another number of inputs, another dtype or rank,
// channels that do not fit, or a window that does not fit; ResourceExhausted
// when there is no memory for the transposed image.
absl::StatusOr<ConvolutionInput> ReadConvolutionInput(
    const KernelContext& context, const WindowAttrs& attrs,
    DataType dtype = tensorflow::DT_FLOAT, bool may_have_groups = false);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_CONVOLUTION_INPUT_H_
