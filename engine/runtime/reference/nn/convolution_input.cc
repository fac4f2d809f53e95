#include "engine/runtime/reference/nn/convolution_input.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/arrays/transpose.h"

namespace optfarm::runtime {

absl::StatusOr<ConvolutionInput> ReadConvolutionInput(
    const KernelContext& context, const WindowAttrs& attrs, DataType dtype,
    bool may_have_groups) {
  OPTFARM_RETURN_IF_ERROR(RequireInputs(context, 2));
  ConvolutionInput result{context.input(0), context.input(1), {}};
  Tensor& image = result.image;
  const Tensor& filter = result.filter;
  OPTFARM_RETURN_IF_ERROR(RequireDtype(image, "input", dtype));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(filter, "filter", dtype));
  OPTFARM_RETURN_IF_ERROR(RequireRank(image, "input", 4));
  OPTFARM_RETURN_IF_ERROR(RequireRank(filter, "filter", 4));
  if (attrs.is_nchw) {
    OPTFARM_ASSIGN_OR_RETURN(image, NchwToNhwc(image, context.pool()));
  }
  const int64_t channels = filter.dim(2);
  const bool has_groups =
      may_have_groups && channels > 0 && image.dim(3) % channels == 0 &&
      filter.dim(3) % std::max<int64_t>(1, image.dim(3) / channels) == 0;
  if (channels != image.dim(3) && !has_groups) {
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
