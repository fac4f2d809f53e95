// How a window slides over the spatial dimensions of an image: the attributes
// that convolution and pooling share.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_WINDOWS_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/onnx/lowering.h"

namespace optfarm::formats {

// A value for each spatial dimension.
struct SlidingWindow {
  std::vector<int64_t> kernel, strides, dilations, pads_before, pads_after;
  // The pads are what TensorFlow calls SAME, for whatever size; the lists of
  // pads are empty then if the size is not known.
  bool is_same = false;
  bool ceil_mode = false;

  int rank() const { return static_cast<int>(kernel.size()); }
  bool has_pads() const;
  bool has_dilations() const;
  // By how much the window reaches, dilation counted.
  int64_t extent(int i) const;
};

// `kernel` counts where attribute kernel_shape is absent; `sizes` are the
// input's spatial dimensions.
// ERRORS: InvalidArgument for values that make no sense or lists of another
// length; Unimplemented where pads follow from a size that is not known.
absl::StatusOr<SlidingWindow> ReadWindow(NodeLowering& n,
                                         std::vector<int64_t> kernel,
                                         absl::Span<const int64_t> sizes);

// The same with a dimension of size 1 in front of the only one.
SlidingWindow InTwoDimensions(const SlidingWindow& window);

// Attributes of TensorFlow's ops in NHWC: strides, padding and so on.
std::vector<OpAttr> WindowAttributes(const SlidingWindow& window,
                                     bool with_dilations);

// {1, a, b, ..., 1}.
std::vector<int64_t> OverImage(const std::vector<int64_t>& spatial);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_WINDOWS_H_
