#include "engine/runtime/reference/nn/window.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

// Larger values mean nothing for an image and would overflow products.
constexpr int64_t kMaxStep = std::numeric_limits<int32_t>::max();

absl::Status ReadExplicitPadding(const tensorflow::NodeDef& node,
                                 WindowAttrs* attrs) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                           graph::GetInts(node, "explicit_paddings"));
  const int y = attrs->is_nchw ? 4 : 2;
  const auto is_bad = [](int64_t v) { return v < 0 || v > kMaxStep; };
  if (pads.size() != 8 || std::any_of(pads.begin(), pads.end(), is_bad)) {
    return absl::InvalidArgumentError(
        absl::StrCat("explicit_paddings must be 8 values >= 0, but is [",
                     absl::StrJoin(pads, ","), "]"));
  }
  attrs->pad_top = pads[y];
  attrs->pad_bottom = pads[y + 1];
  attrs->pad_left = pads[y + 2];
  attrs->pad_right = pads[y + 3];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> ReadWindowList(
    const tensorflow::NodeDef& node, const char* name, bool is_nchw) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> list,
                           graph::GetIntsOr(node, name, {1, 1, 1, 1}));
  const auto is_bad = [](int64_t v) { return v < 1 || v > kMaxStep; };
  if (list.size() != 4 || std::any_of(list.begin(), list.end(), is_bad)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be 4 values >= 1, but is [",
                     absl::StrJoin(list, ","), "]"));
  }
  const int y = is_nchw ? 2 : 1;
  if (list[0] != 1 || list[is_nchw ? 1 : 3] != 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, " must be 1 over batch and channels, but is [",
                     absl::StrJoin(list, ","), "]"));
  }
  return std::vector<int64_t>{list[y], list[y + 1]};
}

absl::StatusOr<WindowAttrs> ReadWindowAttrs(const tensorflow::NodeDef& node) {
  WindowAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_nchw, graph::IsNchw(node));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> strides,
                           ReadWindowList(node, "strides", attrs.is_nchw));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations,
                           ReadWindowList(node, "dilations", attrs.is_nchw));
  attrs.stride_y = strides[0];
  attrs.stride_x = strides[1];
  attrs.dilation_y = dilations[0];
  attrs.dilation_x = dilations[1];
  OPTFARM_ASSIGN_OR_RETURN(attrs.padding, graph::GetPadding(node));
  if (attrs.padding == Padding::kExplicit) {
    OPTFARM_RETURN_IF_ERROR(ReadExplicitPadding(node, &attrs));
  }
  return attrs;
}

absl::StatusOr<WindowAxis> PlaceWindowAxis(WindowAxis axis, Padding padding) {
  if (axis.size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the window has size ", axis.size, ", must be at least 1"));
  }
  int64_t extent = 0;
  if (__builtin_mul_overflow(axis.size - 1, axis.dilation, &extent) ||
      extent > (int64_t{1} << 40) || axis.in > (int64_t{1} << 40)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of size ", axis.size, " and dilation ",
                     axis.dilation, " over ", axis.in, " is too large"));
  }
  extent += 1;
  if (padding == Padding::kSame) {
    axis.out = (axis.in + axis.stride - 1) / axis.stride;
    const int64_t pad =
        std::max<int64_t>(0, (axis.out - 1) * axis.stride + extent - axis.in);
    axis.pad_before = pad / 2;
    axis.pad_after = pad - axis.pad_before;
    return axis;
  }
  const int64_t room = axis.in + axis.pad_before + axis.pad_after - extent;
  if (room < -axis.stride) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", extent, " does not fit into ",
                     axis.in + axis.pad_before + axis.pad_after,
                     " with VALID or explicit padding"));
  }
  axis.out = room < 0 ? 0 : room / axis.stride + 1;
  return axis;
}

absl::StatusOr<Window> PlaceWindow(const WindowAttrs& attrs, int64_t in_y,
                                   int64_t in_x, int64_t size_y,
                                   int64_t size_x) {
  Window window;
  OPTFARM_ASSIGN_OR_RETURN(
      window.y, PlaceWindowAxis({in_y, size_y, attrs.stride_y, attrs.dilation_y,
                                 attrs.pad_top, attrs.pad_bottom, 0},
                                attrs.padding));
  OPTFARM_ASSIGN_OR_RETURN(
      window.x, PlaceWindowAxis({in_x, size_x, attrs.stride_x, attrs.dilation_x,
                                 attrs.pad_left, attrs.pad_right, 0},
                                attrs.padding));
  return window;
}

}  // namespace optfarm::runtime
