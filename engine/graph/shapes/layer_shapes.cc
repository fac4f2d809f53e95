#include "engine/graph/shapes/layer_shapes.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"

namespace optfarm::graph {
namespace {

// Larger attributes are damage.
constexpr int64_t kMostOfWindow = int64_t{1} << 30;

absl::StatusOr<std::vector<int64_t>> Bounded(ShapeContext& c,
                                             absl::string_view name,
                                             size_t count, int64_t least) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> values, c.Ints(name));
  if (values.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " values, not ", count));
  }
  for (const int64_t value : values) {
    if (value < least || value > kMostOfWindow) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " has the value ", value));
    }
  }
  return values;
}

// A state of a recurrent layer; one that is not given has no elements.
absl::Status CheckState(const PartialShape& given, const PartialShape& wanted) {
  const bool may_be_absent = !given.has_rank() || given.rank() != wanted.rank();
  if (may_be_absent && given.elements().value_or(0) == 0) {
    return absl::OkStatus();
  }
  return MergeShapes(given, wanted).status();
}

}  // namespace

absl::Status RecurrentSequenceShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape x, WithRank(c.input(0), 3));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t hidden, c.Int("hidden_size"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string direction, c.String("direction"));
  if (hidden < 1) {
    return absl::InvalidArgumentError(absl::StrCat("hidden_size is ", hidden));
  }
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  c.set_output(0, PartialShape({x.dim(0), directions, x.dim(1), hidden}));
  const PartialShape state({directions, x.dim(1), hidden});
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, state);
    // There is an initial one for each that comes out, behind five others.
    OPTFARM_RETURN_IF_ERROR(CheckState(c.input(4 + i), state));
  }
  return absl::OkStatus();
}

absl::Status Conv2dTransposeShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape image, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape filter, WithRank(c.input(1), 4));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, Bounded(c, "strides", 4, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilations, Bounded(c, "dilations", 4, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto pads,
                           Bounded(c, "explicit_paddings", 8, 0));
  OPTFARM_ASSIGN_OR_RETURN(const auto more, Bounded(c, "output_padding", 2, 0));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t groups, c.Int("groups"));
  if (groups < 1) {
    return absl::InvalidArgumentError(absl::StrCat("groups is ", groups));
  }
  OPTFARM_RETURN_IF_ERROR(MergeDims(image.dim(3), filter.dim(3)).status());
  for (int i = 1; i <= 2; ++i) {
    const int64_t in = image.dim(i), window = filter.dim(i - 1);
    if (in == kUnknownDim || window == kUnknownDim) {
      image.set_dim(i, kUnknownDim);
      continue;
    }
    OPTFARM_ASSIGN_OR_RETURN(int64_t size,
                             MultiplyDims(in > 0 ? in - 1 : 0, strides[i]));
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t reach,
        MultiplyDims(window > 0 ? window - 1 : 0, dilations[i]));
    OPTFARM_ASSIGN_OR_RETURN(size, AddDims(size, reach));
    OPTFARM_ASSIGN_OR_RETURN(size, AddDims(size, 1 + more[i - 1]));
    OPTFARM_ASSIGN_OR_RETURN(size,
                             SubtractDims(size, pads[2 * i] + pads[2 * i + 1]));
    image.set_dim(i, size);
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           MultiplyDims(filter.dim(2), groups));
  image.set_dim(3, channels);
  c.set_output(0, std::move(image));
  return absl::OkStatus();
}

absl::Status WindowPoolShape(ShapeContext& c) {
  PartialShape out = c.input(0);
  if (!out.has_rank()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(WithRankAtLeast(out, 3).status());
  const size_t rank = static_cast<size_t>(out.rank()) - 2;
  OPTFARM_ASSIGN_OR_RETURN(const auto kernel, Bounded(c, "kernel", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, Bounded(c, "strides", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilations,
                           Bounded(c, "dilations", rank, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, Bounded(c, "pads", 2 * rank, 0));
  OPTFARM_ASSIGN_OR_RETURN(const bool ceil_mode, c.Bool("ceil_mode"));
  for (size_t i = 0; i < rank; ++i) {
    const int axis = static_cast<int>(i) + 2;
    const int64_t in = out.dim(axis);
    if (in == kUnknownDim) continue;
    OPTFARM_ASSIGN_OR_RETURN(const int64_t reach,
                             MultiplyDims(kernel[i] - 1, dilations[i]));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t padded,
                             AddDims(in, pads[i] + pads[i + rank]));
    int64_t room = padded - reach - 1;
    // Rounded up, there is one window that reaches beyond the pads.
    if (ceil_mode && room > -strides[i]) room = std::max<int64_t>(room, 0);
    if (room < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a window of ", reach + 1, " does not fit into ", padded));
    }
    int64_t places = room / strides[i];
    if (ceil_mode && room % strides[i] != 0 &&
        (places + 1) * strides[i] < in + pads[i]) {
      ++places;
    }
    out.set_dim(axis, places + 1);
  }
  c.set_output(1, out);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status AnyResizeShape(ShapeContext& c) {
  PartialShape out = c.input(0);
  if (!out.has_rank()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string policy,
                           c.String("keep_aspect_ratio"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> scales,
                           GetFloats(c.node(), "fixed_scales"));
  if (axes.empty()) {
    for (int i = 0; i < out.rank(); ++i) axes.push_back(i);
  }
  const auto sizes = c.Known(3);
  for (size_t i = 0; i < axes.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, AxisInRank(axes[i], out.rank()));
    int64_t size = kUnknownDim;
    if (!scales.empty() && i < scales.size() && out.dim(axis) >= 0) {
      const float scaled = static_cast<float>(out.dim(axis)) * scales[i];
      if (!(scaled >= 0) || scaled > 1e9f) {
        return absl::InvalidArgumentError(
            absl::StrCat("a scale of ", scales[i]));
      }
      size = static_cast<int64_t>(std::floor(scaled));
    } else if (sizes.has_value() && i < sizes->size() && policy == "stretch") {
      size = (*sizes)[i];
      if (size < 0) {
        return absl::InvalidArgumentError(absl::StrCat("a size of ", size));
      }
    }
    out.set_dim(axis, size);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace optfarm::graph
