// Convolution of any number of spatial dimensions, grouped and depthwise.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/convolution.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/windows.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

// Pads the spatial dimensions of an image (N, spatial..., C) with zeros.
Endpoint PadImage(NodeLowering& n, Endpoint x, const SlidingWindow& window) {
  std::vector<int64_t> pads = {0, 0};
  for (size_t i = 0; i < window.pads_before.size(); ++i) {
    pads.push_back(window.pads_before[i]);
    pads.push_back(window.pads_after[i]);
  }
  pads.insert(pads.end(), {0, 0});
  const Endpoint table = n.Add(
      "Reshape",
      {n.Int32s(pads), n.Int32s({static_cast<int64_t>(pads.size()) / 2, 2})});
  return n.Add("PadV2", {x, table, n.ScalarLike(x, 0)});
}

// A filter for each channel: (C * m, 1, h, w) as (h, w, C, m).
Endpoint DepthwiseFilter(NodeLowering& n, Endpoint w, int64_t channels,
                         int64_t multiplier) {
  if (multiplier == 1) return n.Transpose(w, {2, 3, 0, 1});
  const PartialShape& shape = n.shape(w);
  return n.Reshape(n.Transpose(w, {2, 3, 1, 0}),
                   {shape.dim(2), shape.dim(3), channels, multiplier});
}

// Images (N, h, w, C); the filter is still (O, C / groups, h, w).
Endpoint Convolve2d(NodeLowering& n, Endpoint x, Endpoint w, int64_t groups,
                    const SlidingWindow& window) {
  const PartialShape& filter = n.shape(w);
  const int64_t outputs = filter.dim(0);
  const bool is_quantized =
      graph::IsDequantizeLinear(n.builder().graph().node(w.node).op());
  const bool is_depthwise = groups > 1 && filter.dim(1) == 1 &&
                            outputs % groups == 0 &&
                            (outputs == groups || !is_quantized);
  if (is_depthwise) {
    return n.Add("DepthwiseConv2dNative",
                 {x, DepthwiseFilter(n, w, groups, outputs / groups)},
                 WindowAttributes(window, true));
  }
  return n.Add("Conv2D", {x, n.Transpose(w, {2, 3, 1, 0})},
               WindowAttributes(window, true));
}

// Images (N, d, h, w, C), a group after the other.
Endpoint Convolve3d(NodeLowering& n, Endpoint x, Endpoint w, int64_t groups,
                    const SlidingWindow& window) {
  if (window.has_pads()) x = PadImage(n, x, window);
  const Endpoint filter = n.Transpose(w, {2, 3, 4, 1, 0});
  std::vector<OpAttr> attrs = {{"strides", OverImage(window.strides)},
                               {"padding", "VALID"}};
  if (window.has_dilations()) {
    attrs.emplace_back("dilations", OverImage(window.dilations));
  }
  if (groups == 1) return n.Add("Conv3D", {x, filter}, attrs);
  const std::vector<Endpoint> images =
      n.AddAll("Split", {n.Int32(4), x}, {{"num_split", groups}});
  const std::vector<Endpoint> filters =
      n.AddAll("Split", {n.Int32(4), filter}, {{"num_split", groups}});
  std::vector<Endpoint> parts;
  for (size_t i = 0; i < images.size() && i < filters.size(); ++i) {
    parts.push_back(n.Add("Conv3D", {images[i], filters[i]}, attrs));
  }
  parts.push_back(n.Int32(4));
  return n.Add("ConcatV2", parts);
}

absl::Status LowerConv(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint y,
                           Convolve(n, n.input(0), n.input(1),
                                    n.has_input(2) ? n.input(2) : Endpoint()));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Conv", LowerConv},
};

}  // namespace

absl::StatusOr<Endpoint> Convolve(NodeLowering& n, Endpoint x, Endpoint w,
                                  Endpoint bias) {
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(w));
  const PartialShape filter = n.shape(w);
  if (rank < 3 || rank > 5) {
    return absl::UnimplementedError(absl::StrCat(
        "convolution over ", rank - 2, " dimensions is not supported"));
  }
  const int64_t groups = n.Int("group", 1);
  if (groups < 1 || groups > (1 << 20) || filter.dim(0) % groups != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("group is ", groups, " with ", filter.dim(0), " filters"));
  }
  std::vector<int64_t> sizes(static_cast<size_t>(rank - 2), -1);
  const PartialShape& image = n.shape(x);
  if (image.has_rank()) {
    if (image.rank() != rank) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a filter of ", rank, " dimensions on an image of ", image.rank()));
    }
    if (image.dim(1) >= 0 && filter.dim(1) >= 0 &&
        image.dim(1) != filter.dim(1) * groups) {
      return absl::InvalidArgumentError(
          absl::StrCat("the image has ", image.dim(1), " channels, the filter ",
                       filter.dim(1), " for each of ", groups, " groups"));
    }
    for (int i = 2; i < rank; ++i) {
      sizes[static_cast<size_t>(i - 2)] = image.dim(i);
    }
  }
  std::vector<int64_t> kernel(filter.dims().begin() + 2, filter.dims().end());
  OPTFARM_ASSIGN_OR_RETURN(SlidingWindow window,
                           ReadWindow(n, std::move(kernel), sizes));
  Endpoint y = n.ToChannelsLast(x, rank);
  if (rank == 3) {
    // (N, L, C) as an image of one row.
    y = Convolve2d(n, n.Unsqueeze(y, {1}), n.Unsqueeze(w, {2}), groups,
                   InTwoDimensions(window));
  } else if (rank == 4) {
    y = Convolve2d(n, y, w, groups, window);
  } else {
    if (window.is_same && window.pads_before.empty()) {
      return absl::UnimplementedError(
          "auto_pad needs an image of known size in three dimensions");
    }
    y = Convolve3d(n, y, w, groups, window);
  }
  if (bias.node != graph::kNoNode) y = n.Add("BiasAdd", {y, bias});
  if (rank == 3) y = n.Squeeze(y, {1});
  return n.ToChannelsFirst(y, rank);
}

absl::Span<const LoweringRow> ConvolutionLowerings() { return kRows; }

}  // namespace optfarm::formats
