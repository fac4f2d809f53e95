// Windows of convolutions and pools: a graph's attributes in ONNX's form.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_RAISING_WINDOW_ATTRIBUTES_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_RAISING_WINDOW_ATTRIBUTES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/formats/onnx/raising/axis_order.h"
#include "engine/formats/onnx/raising/node_raiser.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats {

struct OnnxWindow {
  // The order that ONNX wants the pictures in: channels second.
  AxisOrder order;
  // One for each spatial axis.
  std::vector<int64_t> size, strides, dilations;
  graph::Padding padding = graph::Padding::kValid;
  // At the beginning of each spatial axis, then at the end; only with
  // kExplicit.
  std::vector<int64_t> explicit_pads;
  // Of the graph's pictures; -1 where it is not known.
  std::vector<int64_t> picture;

  int spatial_rank() const { return static_cast<int>(strides.size()); }
};

// Reads strides, dilations, padding and data_format of a node whose input
// `input` has `spatial_rank` + 2 axes. `size` is left to the caller.
// ERRORS: InvalidArgument for attributes that do not fit; Unimplemented for
// strides over batches or channels.
absl::StatusOr<OnnxWindow> ReadWindow(NodeRaiser& n, int input,
                                      int spatial_rank);

// The list attribute's entries along the spatial axes.
// ERRORS: InvalidArgument for a list of another length; Unimplemented when
// batches or channels have another entry than 1.
absl::StatusOr<std::vector<int64_t>> SpatialEntries(const NodeRaiser& n,
                                                    absl::string_view attribute,
                                                    int spatial_rank,
                                                    bool channels_first);

// Whether data_format puts channels before the spatial axes.
absl::StatusOr<bool> HasChannelsFirst(const NodeRaiser& n);

// strides, dilations, kernel_shape and pads or auto_pad.
// REQUIRES: size has one entry for each spatial axis.
std::vector<OnnxAttribute> WindowAttributes(const OnnxWindow& window);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_RAISING_WINDOW_ATTRIBUTES_H_
