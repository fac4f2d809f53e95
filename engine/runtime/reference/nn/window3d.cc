#include "engine/runtime/reference/nn/window3d.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"
#include "engine/runtime/reference/arrays/transpose.h"

namespace optfarm::runtime {
namespace {

// Three positive values of a list of five, for depth, height and width.
absl::StatusOr<std::array<int64_t, 3>> ReadList(const tensorflow::NodeDef& node,
                                                const char* name,
                                                bool is_ncdhw) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> list,
                           graph::GetIntsOr(node, name, {1, 1, 1, 1, 1}));
  const auto is_bad = [](int64_t v) {
    return v < 1 || v > std::numeric_limits<int32_t>::max();
  };
  if (list.size() != 5 || std::any_of(list.begin(), list.end(), is_bad)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " must be 5 values >= 1, but is [",
                     absl::StrJoin(list, ","), "]"));
  }
  if (list[0] != 1 || list[is_ncdhw ? 1 : 4] != 1) {
    return absl::UnimplementedError(
        absl::StrCat(name, " must be 1 over batch and channels, but is [",
                     absl::StrJoin(list, ","), "]"));
  }
  const int z = is_ncdhw ? 2 : 1;
  return std::array<int64_t, 3>{list[z], list[z + 1], list[z + 2]};
}

}  // namespace

absl::StatusOr<Window3dAttrs> ReadWindow3dAttrs(
    const tensorflow::NodeDef& node) {
  Window3dAttrs attrs;
  OPTFARM_ASSIGN_OR_RETURN(attrs.is_ncdhw, graph::IsNcdhw(node));
  OPTFARM_ASSIGN_OR_RETURN(attrs.strides,
                           ReadList(node, "strides", attrs.is_ncdhw));
  OPTFARM_ASSIGN_OR_RETURN(attrs.dilations,
                           ReadList(node, "dilations", attrs.is_ncdhw));
  OPTFARM_ASSIGN_OR_RETURN(attrs.size, ReadList(node, "ksize", attrs.is_ncdhw));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_same, graph::IsSame(node));
  attrs.padding = is_same ? Padding::kSame : Padding::kValid;
  return attrs;
}

absl::StatusOr<Window3d> PlaceWindow3d(const Window3dAttrs& attrs,
                                       absl::Span<const int64_t> in,
                                       absl::Span<const int64_t> size) {
  Window3d window;
  for (int i = 0; i < 3; ++i) {
    WindowAxis axis;
    axis.in = in[i];
    axis.size = size[i];
    axis.stride = attrs.strides[i];
    axis.dilation = attrs.dilations[i];
    OPTFARM_ASSIGN_OR_RETURN(window.axes[i],
                             PlaceWindowAxis(axis, attrs.padding));
  }
  return window;
}

absl::StatusOr<Tensor> NcdhwToNdhwc(const Tensor& tensor, ThreadPool* pool) {
  return Transposed(tensor, {0, 2, 3, 4, 1}, pool);
}

absl::StatusOr<Tensor> NdhwcToNcdhw(const Tensor& tensor, ThreadPool* pool) {
  return Transposed(tensor, {0, 4, 1, 2, 3}, pool);
}

}  // namespace optfarm::runtime
