// Which pixels the ops that resize pictures take for each other.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_RESIZE_ATTRS_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_RESIZE_ATTRS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

struct ResizeAttrs {
  // The centres of the outermost pixels of both pictures lie on each other.
  bool align_corners = false;
  // Pixels are areas of their own centres, not points at their first corner.
  bool half_pixel_centers = false;
};

// ERRORS: InvalidArgument when both are set, or one is not a bool.
absl::StatusOr<ResizeAttrs> ReadResizeAttrs(const tensorflow::NodeDef& node);

// How far one output position moves in an input of size `in`.
// REQUIRES: out > 0.
float ResizeStep(int64_t in, int64_t out, bool align_corners);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_IMAGES_RESIZE_ATTRS_H_
