#include "engine/runtime/reference/audio/spectrogram_attrs.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 22;

}  // namespace

absl::StatusOr<SpectrogramAttrs> ReadSpectrogramAttrs(
    const tensorflow::NodeDef& node) {
  SpectrogramAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.window, graph::GetInt(node, "window_size"));
  OPTFARM_ASSIGN_OR_RETURN(attrs.stride, graph::GetInt(node, "stride"));
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_squared,
                           graph::GetBoolOr(node, "magnitude_squared", false));
  if (attrs.window < 2 || attrs.window > kMaxWindow || attrs.stride < 1 ||
      attrs.stride > kMaxWindow) {
    return absl::InvalidArgumentError(absl::StrCat(
        "window_size ", attrs.window, " and stride ", attrs.stride,
        " must be within [2, ", kMaxWindow, "] and [1, ", kMaxWindow, "]"));
  }
  attrs.fft_size = 2;
  while (attrs.fft_size < attrs.window) attrs.fft_size *= 2;
  return attrs;
}

absl::StatusOr<Shape> SpectrogramShape(const SpectrogramAttrs& attrs,
                                       const Tensor& input) {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(input, "input", tensorflow::DT_FLOAT));
  OPTFARM_RETURN_IF_ERROR(RequireRank(input, "input", 2));
  const int64_t dims[] = {input.dim(1), attrs.slices(input.dim(0)),
                          attrs.bins()};
  return Shape::FromDims(dims);
}

std::vector<double> HannWindow(int64_t window) {
  std::vector<double> values(window);
  for (int64_t i = 0; i < window; ++i) {
    values[i] =
        0.5 - 0.5 * std::cos(2.0 * std::numbers::pi * static_cast<double>(i) /
                             static_cast<double>(window));
  }
  return values;
}

}  // namespace optfarm::runtime
