// Spreads the written indices over the input's axes and plans each axis by
// itself.

#include "engine/graph/strided_slice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::graph {
namespace {

// Masks have 32 bits that count.
constexpr size_t kMaxEntries = 32;

bool HasBit(int64_t mask, size_t i) { return (mask >> i) & 1; }

// One axis of the input after the ellipsis has been spread out.
struct AxisRequest {
  std::optional<int64_t> begin = 0;
  std::optional<int64_t> end = 0;
  int64_t stride = 1;
  bool from_edge = true;
  bool to_edge = true;
  bool shrink = false;
};

// The first element, or one past the last, as a position in -1..size.
int64_t ClampToAxis(int64_t index, int64_t stride, int64_t size) {
  if (index < 0) index += size;
  return stride > 0 ? std::clamp<int64_t>(index, 0, size)
                    : std::clamp<int64_t>(index, -1, size - 1);
}

absl::StatusOr<StridedSliceAxis> PlanAxis(const AxisRequest& request,
                                          int64_t size) {
  StridedSliceAxis axis;
  axis.stride = request.stride;
  if (request.shrink) {
    if (request.stride <= 0) {
      return absl::InvalidArgumentError(
          "a single index needs a positive stride");
    }
    axis.size = 1;
    axis.begin = request.begin;
    if (size == kUnknownDim || !request.begin.has_value()) {
      if (request.begin.value_or(-1) < 0) axis.begin = std::nullopt;
      return axis;
    }
    // The begin mask does not count here, as in TensorFlow.
    const int64_t index = *request.begin;
    if (index < -size || index >= size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", index, " is outside of a dimension of ", size));
    }
    axis.begin = index < 0 ? index + size : index;
    return axis;
  }
  if (size == kUnknownDim) {
    if (request.stride > 0) {
      axis.begin =
          request.from_edge ? std::optional<int64_t>(0) : request.begin;
      if (axis.begin.value_or(-1) < 0) axis.begin = std::nullopt;
    }
    return axis;
  }
  const int64_t low = request.stride > 0 ? 0 : -1;
  const int64_t high = request.stride > 0 ? size : size - 1;
  std::optional<int64_t> begin;
  std::optional<int64_t> end;
  if (request.from_edge) {
    begin = request.stride > 0 ? low : high;
  } else if (request.begin.has_value()) {
    begin = ClampToAxis(*request.begin, request.stride, size);
  }
  if (request.to_edge) {
    end = request.stride > 0 ? high : low;
  } else if (request.end.has_value()) {
    end = ClampToAxis(*request.end, request.stride, size);
  }
  axis.begin = begin;
  if (!begin.has_value() || !end.has_value()) return axis;
  const int64_t span = *end - *begin;
  if (span == 0 || (span < 0) != (request.stride < 0)) {
    axis.size = 0;
  } else {
    axis.size = span / request.stride + (span % request.stride != 0 ? 1 : 0);
  }
  return axis;
}

absl::Status CheckSpec(const StridedSliceSpec& spec) {
  const size_t n = spec.strides.size();
  if (n > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slice with ", n, " indices is too long"));
  }
  if ((spec.begin.has_value() && spec.begin->size() != n) ||
      (spec.end.has_value() && spec.end->size() != n)) {
    return absl::InvalidArgumentError(
        "begin, end and strides have different lengths");
  }
  int ellipses = 0;
  for (size_t i = 0; i < n; ++i) {
    ellipses += HasBit(spec.ellipsis_mask, i);
    if (spec.strides[i] == 0) {
      return absl::InvalidArgumentError("a slice has the stride 0");
    }
  }
  if (ellipses > 1) {
    return absl::InvalidArgumentError("a slice has more than one ellipsis");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StridedSlicePlan> PlanStridedSlice(
    const PartialShape& input, const StridedSliceSpec& spec) {
  OPTFARM_RETURN_IF_ERROR(CheckSpec(spec));
  const size_t n = spec.strides.size();
  // How many axes the entries name; an ellipsis takes the others, and without
  // one they follow at the end.
  int named = 0;
  bool has_ellipsis = false;
  for (size_t i = 0; i < n; ++i) {
    if (HasBit(spec.ellipsis_mask, i)) {
      has_ellipsis = true;
    } else if (!HasBit(spec.new_axis_mask, i)) {
      ++named;
    }
  }
  const int spare = input.rank() - named;
  if (spare < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a slice with ", named, " indices of a shape of rank ", input.rank()));
  }
  StridedSlicePlan plan;
  std::vector<int64_t> output;
  const auto take = [&](const AxisRequest& request) -> absl::Status {
    const int at = static_cast<int>(plan.axes.size());
    OPTFARM_ASSIGN_OR_RETURN(const StridedSliceAxis axis,
                             PlanAxis(request, input.dim(at)));
    plan.axes.push_back(axis);
    if (!request.shrink) output.push_back(axis.size);
    return absl::OkStatus();
  };
  const auto take_spare = [&]() -> absl::Status {
    for (int i = 0; i < spare; ++i) {
      OPTFARM_RETURN_IF_ERROR(take(AxisRequest()));
      // A whole axis keeps its size, known or not.
      output.back() = input.dim(static_cast<int>(plan.axes.size()) - 1);
    }
    return absl::OkStatus();
  };
  for (size_t i = 0; i < n; ++i) {
    if (HasBit(spec.ellipsis_mask, i)) {
      OPTFARM_RETURN_IF_ERROR(take_spare());
      continue;
    }
    if (HasBit(spec.new_axis_mask, i)) {
      output.push_back(1);
      continue;
    }
    AxisRequest request;
    request.begin = std::nullopt;
    request.end = std::nullopt;
    if (spec.begin.has_value()) request.begin = (*spec.begin)[i];
    if (spec.end.has_value()) request.end = (*spec.end)[i];
    request.stride = spec.strides[i];
    request.from_edge = HasBit(spec.begin_mask, i);
    request.to_edge = HasBit(spec.end_mask, i);
    request.shrink = HasBit(spec.shrink_axis_mask, i);
    OPTFARM_RETURN_IF_ERROR(take(request));
  }
  if (!has_ellipsis) OPTFARM_RETURN_IF_ERROR(take_spare());
  if (output.size() > kMaxRank) {
    return absl::InvalidArgumentError("the result has too many axes");
  }
  plan.output = PartialShape(std::move(output));
  return plan;
}

}  // namespace optfarm::graph
