#include "engine/runtime/reference/images/resize_attrs.h"

#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {

absl::StatusOr<ResizeAttrs> ReadResizeAttrs(const tensorflow::NodeDef& node) {
  ResizeAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.align_corners,
                           graph::GetBoolOr(node, "align_corners", false));
  OPTFARM_ASSIGN_OR_RETURN(attrs.half_pixel_centers,
                           graph::GetBoolOr(node, "half_pixel_centers", false));
  if (attrs.align_corners && attrs.half_pixel_centers) {
    return absl::InvalidArgumentError(
        "align_corners and half_pixel_centers exclude each other");
  }
  return attrs;
}

float ResizeStep(int64_t in, int64_t out, bool align_corners) {
  return align_corners && out > 1
             ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
             : static_cast<float>(in) / static_cast<float>(out);
}

}  // namespace optfarm::runtime
