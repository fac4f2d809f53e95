// Shapes of ops that slide a window over space: convolution and pooling.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/shapes/shape_functions.h"
#include "engine/graph/shapes/shape_layout.h"

namespace optfarm::graph {
namespace {

// A list attribute with one entry per axis; ones when the op has no such
// attribute or it is an empty list.
absl::StatusOr<std::vector<int64_t>> PerAxis(const ShapeContext& c,
                                             absl::string_view name, int rank) {
  std::vector<int64_t> values;
  if (FindAttrDef(c.op_def(), name) != nullptr) {
    OPTFARM_ASSIGN_OR_RETURN(values, c.Ints(name));
  }
  if (values.empty()) values.assign(rank, 1);
  if (static_cast<int>(values.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute '", name, "' must have ", rank,
                     " entries, not ", values.size()));
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> ExplicitPaddings(const ShapeContext& c,
                                                      Padding padding,
                                                      int rank) {
  if (padding != Padding::kExplicit) return std::vector<int64_t>(2 * rank, 0);
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> paddings,
                           c.Ints("explicit_paddings"));
  if (static_cast<int>(paddings.size()) != 2 * rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("explicit_paddings must have ", 2 * rank, " entries"));
  }
  return paddings;
}

// Slides a window of `window` over the spatial axes of `in`; `window` has one
// entry per spatial axis. Channels of the result are `channels`.
absl::StatusOr<PartialShape> Slide(const ShapeContext& c,
                                   const PartialShape& in,
                                   const std::vector<int64_t>& window,
                                   int64_t channels) {
  const int rank = in.rank();
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, rank));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, PerAxis(c, "strides", rank));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilations, PerAxis(c, "dilations", rank));
  OPTFARM_ASSIGN_OR_RETURN(const Padding padding, c.ReadPadding());
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, ExplicitPaddings(c, padding, rank));
  PartialShape out = in;
  for (size_t i = 0; i < window.size(); ++i) {
    const int axis = layout.rows + static_cast<int>(i);
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t dim,
        WindowedSize(in.dim(axis),
                     {window[i], strides[axis], dilations[axis], pads[2 * axis],
                      pads[2 * axis + 1]},
                     padding));
    out.set_dim(axis, dim);
  }
  out.set_dim(layout.channels, channels);
  return out;
}

// Convolution of `in` with a filter [window..., in channels, out channels].
absl::Status ConvolutionShape(ShapeContext& c, const PartialShape& input,
                              const PartialShape& filter_shape, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in, WithRank(input, rank));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape filter,
                           WithRank(filter_shape, rank));
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, rank));
  const int64_t have = in.dim(layout.channels);
  const int64_t want = filter.dim(rank - 2);
  // The input may have a multiple of the filter's channels: groups.
  if (have != kUnknownDim && want != kUnknownDim &&
      (want == 0 || have % want != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input has ", have, " channels, the filter ", want));
  }
  const std::vector<int64_t> window(filter.dims().begin(),
                                    filter.dims().end() - 2);
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out,
                           Slide(c, in, window, filter.dim(rank - 1)));
  return SetWithScalars(c, std::move(out));
}

// The gradient for an input or a filter, whose shape an input holds.
absl::Status BackpropShape(ShapeContext& c, int sizes, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, c.ShapeFromInput(sizes));
  OPTFARM_ASSIGN_OR_RETURN(out, WithRank(out, rank));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Pooling may also run over batch and channels, with windows of its own there.
absl::StatusOr<PartialShape> PooledShape(const ShapeContext& c, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), rank));
  OPTFARM_ASSIGN_OR_RETURN(const auto sizes, PerAxis(c, "ksize", rank));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, PerAxis(c, "strides", rank));
  OPTFARM_ASSIGN_OR_RETURN(const Padding padding, c.ReadPadding());
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, ExplicitPaddings(c, padding, rank));
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] == 1 && strides[i] == 1) continue;
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t dim,
        WindowedSize(out.dim(i),
                     {sizes[i], strides[i], 1, pads[2 * i], pads[2 * i + 1]},
                     padding));
    out.set_dim(i, dim);
  }
  return out;
}

}  // namespace

absl::Status Conv3dShape(ShapeContext& c) {
  return ConvolutionShape(c, c.input(0), c.input(1), 5);
}

namespace {

absl::Status PaddedConv2dShape(ShapeContext& c, bool resize) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape in, WithRank(c.input(0), 4));
  if (resize) {
    const PartialValue* size = c.value(1);
    const bool known = size != nullptr && size->elements.size() == 2;
    for (int i = 0; i < 2; ++i) {
      const int64_t dim =
          known ? size->elements[i].value_or(kUnknownDim) : kUnknownDim;
      if (dim < kUnknownDim) {
        return absl::InvalidArgumentError("a size is negative");
      }
      in.set_dim(i + 1, dim);
    }
  }
  const PartialValue* pads = c.value(resize ? 2 : 1);
  const bool known = pads != nullptr && pads->elements.size() == 8;
  for (int i = 0; i < 4; ++i) {
    int64_t dim = in.dim(i);
    for (int side = 0; side < 2; ++side) {
      const int64_t pad =
          known ? pads->elements[2 * i + side].value_or(kUnknownDim)
                : kUnknownDim;
      if (pad < kUnknownDim) {
        return absl::InvalidArgumentError("a padding is negative");
      }
      OPTFARM_ASSIGN_OR_RETURN(dim, AddDims(dim, pad));
    }
    in.set_dim(i, dim);
  }
  return ConvolutionShape(c, in, c.input(resize ? 3 : 2), 4);
}

}  // namespace

absl::Status FusedPadConv2dShape(ShapeContext& c) {
  return PaddedConv2dShape(c, false);
}

absl::Status FusedResizePadConv2dShape(ShapeContext& c) {
  return PaddedConv2dShape(c, true);
}

absl::Status Conv2dBackpropInputShape(ShapeContext& c) {
  // The sizes may be only height and width; the rest then follows from the
  // other inputs.
  const PartialValue* sizes = c.value(0);
  if (sizes != nullptr && sizes->elements.size() == 2) {
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape hw, c.ShapeFromInput(0));
    OPTFARM_ASSIGN_OR_RETURN(const PartialShape filter,
                             WithRank(c.input(1), 4));
    OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(2), 4));
    OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, 4));
    out.set_dim(layout.rows, hw.dim(0));
    out.set_dim(layout.rows + 1, hw.dim(1));
    out.set_dim(layout.channels, filter.dim(2));
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  return BackpropShape(c, 0, 4);
}

absl::Status Conv2dBackpropFilterShape(ShapeContext& c) {
  return BackpropShape(c, 1, 4);
}

absl::Status Conv3dBackpropInputShape(ShapeContext& c) {
  return BackpropShape(c, 0, 5);
}

absl::Status Conv3dBackpropFilterShape(ShapeContext& c) {
  return BackpropShape(c, 1, 5);
}

absl::Status Dilation2dShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape filter, WithRank(c.input(1), 3));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, PerAxis(c, "strides", 4));
  OPTFARM_ASSIGN_OR_RETURN(const auto rates, PerAxis(c, "rates", 4));
  OPTFARM_ASSIGN_OR_RETURN(const Padding padding, c.ReadPadding());
  for (int i = 1; i <= 2; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(
        const int64_t dim,
        WindowedSize(out.dim(i), {filter.dim(i - 1), strides[i], rates[i]},
                     padding));
    out.set_dim(i, dim);
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           MergeDims(out.dim(3), filter.dim(2)));
  out.set_dim(3, channels);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Pool3dShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, PooledShape(c, 5));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status MaxPoolWithArgmaxShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, PooledShape(c, 4));
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return absl::OkStatus();
}

absl::Status MaxPoolV2Shape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  const auto sizes = c.Known(1);
  const auto strides = c.Known(2);
  OPTFARM_ASSIGN_OR_RETURN(const Padding padding, c.ReadPadding());
  for (int i = 0; i < 4; ++i) {
    int64_t dim = kUnknownDim;
    if (sizes.has_value() && strides.has_value() && sizes->size() == 4 &&
        strides->size() == 4) {
      OPTFARM_ASSIGN_OR_RETURN(
          dim, WindowedSize(out.dim(i), {(*sizes)[i], (*strides)[i]}, padding));
    }
    out.set_dim(i, dim);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status FractionalPoolShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, WithRank(c.input(0), 4));
  const auto it = c.node().attr().find("pooling_ratio");
  const auto* ratios =
      it == c.node().attr().end() ? nullptr : &it->second.list().f();
  for (int i = 1; i < 3; ++i) {
    int64_t dim = kUnknownDim;
    if (ratios != nullptr && ratios->size() == 4 && ratios->Get(i) >= 1.0f &&
        out.dim(i) != kUnknownDim) {
      dim = static_cast<int64_t>(static_cast<double>(out.dim(i)) /
                                 static_cast<double>(ratios->Get(i)));
    }
    out.set_dim(i, dim);
    c.set_output(i, PartialShape::Vector(dim == kUnknownDim ? dim : dim + 1));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status AvgPoolGradShape(ShapeContext& c) {
  return BackpropShape(c, 0, 4);
}

absl::StatusOr<Layout> ReadLayout(const ShapeContext& c, int rank) {
  OPTFARM_ASSIGN_OR_RETURN(const DataFormat format, c.ReadDataFormat());
  if (format == DataFormat::kNchwVectC) {
    return absl::InvalidArgumentError(
        "data_format 'NCHW_VECT_C' is not known here");
  }
  return HasChannelsFirst(format) ? Layout{1, 2} : Layout{rank - 1, 1};
}

absl::Status SetWithScalars(ShapeContext& c, PartialShape out) {
  c.set_output(0, std::move(out));
  for (int i = 1; i < c.output_count(); ++i) {
    c.set_output(i, PartialShape::Scalar());
  }
  return absl::OkStatus();
}

absl::Status Conv2dShape(ShapeContext& c) {
  return ConvolutionShape(c, c.input(0), c.input(1), 4);
}

absl::Status DepthwiseConv2dShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape in, WithRank(c.input(0), 4));
  OPTFARM_ASSIGN_OR_RETURN(const PartialShape filter, WithRank(c.input(1), 4));
  OPTFARM_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(c, 4));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t channels,
                           MergeDims(in.dim(layout.channels), filter.dim(2)));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t out_channels,
                           MultiplyDims(channels, filter.dim(3)));
  OPTFARM_ASSIGN_OR_RETURN(
      PartialShape out,
      Slide(c, in, {filter.dim(0), filter.dim(1)}, out_channels));
  return SetWithScalars(c, std::move(out));
}

absl::Status Pool2dShape(ShapeContext& c) {
  OPTFARM_ASSIGN_OR_RETURN(PartialShape out, PooledShape(c, 4));
  return SetWithScalars(c, std::move(out));
}

}  // namespace optfarm::graph
