// fuse_convolutions: the name that TensorFlow's documentation has for the three
// transforms that fuse something into a convolution.

#include "base/status_macros.h"
#include "engine/transforms/folding/fused_convolution.h"
#include "engine/transforms/machinery/builtin_transforms.h"

namespace optfarm::transforms {
namespace {

// The longest pattern first: the others would take parts of it.
absl::Status FuseConvolutions(graph::Graph* graph, TransformContext* context) {
  OPTFARM_RETURN_IF_ERROR(FuseResizePadAndConv(graph, context));
  OPTFARM_RETURN_IF_ERROR(FuseResizeAndConv(graph, context));
  return FusePadAndConv(graph, context);
}

}  // namespace

TransformDef FuseConvolutionsTransform() {
  return {.name = "fuse_convolutions",
          .summary =
              "Runs fuse_resize_pad_and_conv, fuse_resize_and_conv and "
              "fuse_pad_and_conv.",
          .parameters = {},
          .run = FuseConvolutions};
}

}  // namespace optfarm::transforms
