#include "engine/runtime/kernels/convolution_input.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/transpose.h"

namespace optfarm::runtime {

absl::StatusOr<ConvolutionInput> ReadConvolutionInput(
    const KernelContext& context, const WindowAttrs& attrs) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  ConvolutionInput result{context.input(0), context.input(1), {}};
  Tensor& image = result.image;
  const Tensor& filter = result.filter;
  OPTFARM_RETURN_IF_ERROR(RequireDtype(image, "input", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(filter, "filter", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(image, "input", 4));
  OPTFARM_RETURN_IF_ERROR(RequireRank(filter, "filter", 4));
  if (attrs.is_nchw) {
    OPTFARM_ASSIGN_OR_RETURN(image, NchwToNhwc(image, context.pool()));
  }
  if (filter.dim(2) != image.dim(3)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input of shape ", context.input(0).shape().ToString(),
                     " has ", image.dim(3), " channels, but filter of shape ",
                     filter.shape().ToString(), " takes ", filter.dim(2)));
  }
  OPTFARM_ASSIGN_OR_RETURN(result.window,
                           PlaceWindow(attrs, image.dim(1), image.dim(2),
                                       filter.dim(0), filter.dim(1)));
  return result;
}

}  // namespace optfarm::runtime
