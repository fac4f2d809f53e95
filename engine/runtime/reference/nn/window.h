// Where a sliding window stands: sizes and padding of convolution and pooling,
// shared by all kernels that slide one over an image.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

using graph::Padding;

// The attributes of an op that slides a window over height and width.
struct WindowAttrs {
  Padding padding = Padding::kValid;
  bool is_nchw = false;
  int64_t stride_y = 1;
  int64_t stride_x = 1;
  int64_t dilation_y = 1;
  int64_t dilation_x = 1;
  // Only for kExplicit.
  int64_t pad_top = 0;
  int64_t pad_bottom = 0;
  int64_t pad_left = 0;
  int64_t pad_right = 0;
};

// Reads strides, padding, data_format, dilations, explicit_paddings.
// ERRORS: InvalidArgument for values out of range; Unimplemented for strides or
// dilations over batch or channels.
absl::StatusOr<WindowAttrs> ReadWindowAttrs(const tensorflow::NodeDef& node);

// Reads a list attribute of four positive values of which those for batch and
// channels must be 1: {height, width}.
absl::StatusOr<std::vector<int64_t>> ReadWindowList(
    const tensorflow::NodeDef& node, const char* name, bool is_nchw);

// One axis of a window: out = floor((in + pads - extent) / stride) + 1, with
// extent = (size - 1) * dilation + 1.
struct WindowAxis {
  int64_t in = 0;
  int64_t size = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_before = 0;
  int64_t pad_after = 0;
  int64_t out = 0;
};

// Computes `out`, and for kSame the pads, from the other fields.
// ERRORS: InvalidArgument when the window is empty or does not fit.
absl::StatusOr<WindowAxis> PlaceWindowAxis(WindowAxis axis, Padding padding);

// Both axes for an input of in_y x in_x and a window of size_y x size_x.
// ERRORS: InvalidArgument when the window is empty or does not fit.
struct Window {
  WindowAxis y;
  WindowAxis x;
};
absl::StatusOr<Window> PlaceWindow(const WindowAttrs& attrs, int64_t in_y,
                                   int64_t in_x, int64_t size_y,
                                   int64_t size_x);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_NN_WINDOW_H_
