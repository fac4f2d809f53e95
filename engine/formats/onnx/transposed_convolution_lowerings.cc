// ConvTranspose, and sums of columns (which is what it is made of).

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/windows.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

// Window, with the pads that follow from output_shape and auto_pad, and what is
// added behind the image.
struct TransposedWindow {
  SlidingWindow window;
  std::vector<int64_t> more;
};

absl::StatusOr<std::vector<int64_t>> ListOr(NodeLowering& n,
                                            absl::string_view name, size_t rank,
                                            int64_t absent, int64_t least) {
  std::vector<int64_t> values = n.Ints(name);
  if (values.empty()) values.assign(rank, absent);
  for (const int64_t value : values) {
    if (value < least || value > (1 << 20) || values.size() != rank) {
      return absl::InvalidArgumentError(absl::StrCat(name, " makes no sense"));
    }
  }
  return values;
}

// Pads so that the result has the wanted sizes.
absl::Status PadToSizes(absl::Span<const int64_t> sizes,
                        const std::vector<int64_t>& wanted,
                        const std::string& auto_pad, TransposedWindow* t) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (sizes[i] < 0) {
      return absl::UnimplementedError(
          "output_shape and auto_pad need an image of known size");
    }
    const int64_t full = t->window.strides[i] * (sizes[i] - 1) + t->more[i] +
                         t->window.extent(axis);
    // What is wanted beyond that is added behind the image.
    if (wanted[i] > full) t->more[i] += wanted[i] - full;
    const int64_t total = std::max<int64_t>(0, full - wanted[i]);
    const int64_t smaller = total / 2;
    const bool more_behind = auto_pad == "SAME_UPPER";
    t->window.pads_before[i] = more_behind ? smaller : total - smaller;
    t->window.pads_after[i] = more_behind ? total - smaller : smaller;
  }
  return absl::OkStatus();
}

absl::StatusOr<TransposedWindow> ReadTransposedWindow(
    NodeLowering& n, const PartialShape& filter,
    absl::Span<const int64_t> sizes) {
  TransposedWindow t;
  const size_t rank = sizes.size();
  const std::vector<int64_t> kernel(filter.dims().begin() + 2,
                                    filter.dims().end());
  OPTFARM_ASSIGN_OR_RETURN(t.more, ListOr(n, "output_padding", rank, 0, 0));
  OPTFARM_ASSIGN_OR_RETURN(t.window.strides, ListOr(n, "strides", rank, 1, 1));
  OPTFARM_ASSIGN_OR_RETURN(t.window.dilations,
                           ListOr(n, "dilations", rank, 1, 1));
  t.window.kernel = kernel;
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, ListOr(n, "pads", 2 * rank, 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  t.window.pads_before.assign(pads.begin(), middle);
  t.window.pads_after.assign(middle, pads.end());
  const std::string auto_pad = n.String("auto_pad", "NOTSET");
  std::vector<int64_t> wanted = n.Ints("output_shape");
  // Some files have the batch and the channels in front.
  if (wanted.size() == rank + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.size() == rank) {
    OPTFARM_RETURN_IF_ERROR(PadToSizes(sizes, wanted, auto_pad, &t));
  } else if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    for (size_t i = 0; i < rank; ++i) {
      wanted.push_back(sizes[i] * t.window.strides[i]);
    }
    OPTFARM_RETURN_IF_ERROR(PadToSizes(sizes, wanted, auto_pad, &t));
  }
  return t;
}

// Whether the result is that of a convolution with the filter turned around:
// one cell of the filter for each element, and no borders taken away.
bool IsConvolution(NodeLowering& n, Endpoint w, int64_t groups,
                   const SlidingWindow& window,
                   const std::vector<int64_t>& more) {
  const PartialShape& filter = n.shape(w);
  if (groups > 1 && filter.dim(0) != groups) return false;
  // Scales of a quantized filter are by another axis then.
  if (graph::IsDequantizeLinear(n.builder().graph().node(w.node).op())) {
    return false;
  }
  for (int i = 0; i < 2; ++i) {
    const auto axis = static_cast<size_t>(i);
    const int64_t reach = window.extent(i) - 1;
    if (window.strides[axis] != 1 || more[axis] != 0 ||
        window.pads_before[axis] > reach || window.pads_after[axis] > reach) {
      return false;
    }
  }
  return true;
}

// REQUIRES: IsConvolution.
Endpoint ConvolveTurned(NodeLowering& n, Endpoint x, Endpoint w, int64_t groups,
                        SlidingWindow window) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = window.extent(static_cast<int>(i)) - 1;
    window.pads_before[i] = reach - window.pads_before[i];
    window.pads_after[i] = reach - window.pads_after[i];
  }
  Endpoint filter = n.Transpose(w, {2, 3, 0, 1});
  if (window.kernel[0] * window.kernel[1] > 1) {
    filter = n.Add("ReverseV2", {filter, n.Int32s({0, 1})});
  }
  return n.Add(groups > 1 ? "DepthwiseConv2dNative" : "Conv2D", {x, filter},
               WindowAttributes(window, true));
}

// Images (N, h, w, C); the filter is still (C, O / groups, h, w).
Endpoint ConvolveTransposed2d(NodeLowering& n, Endpoint x, Endpoint w,
                              int64_t groups, const SlidingWindow& window,
                              const std::vector<int64_t>& more) {
  if (IsConvolution(n, w, groups, window, more)) {
    return ConvolveTurned(n, x, w, groups, window);
  }
  std::vector<int64_t> pads = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    pads.push_back(window.pads_before[i]);
    pads.push_back(window.pads_after[i]);
  }
  pads.insert(pads.end(), {0, 0});
  return n.Add("Conv2DTranspose", {x, n.Transpose(w, {2, 3, 1, 0})},
               {{"strides", OverImage(window.strides)},
                {"dilations", OverImage(window.dilations)},
                {"explicit_paddings", pads},
                {"output_padding", more},
                {"groups", groups}});
}

// Images (N, d, h, w, C): the gradient of a convolution without pads, and what
// the pads take from its borders.
absl::StatusOr<Endpoint> ConvolveTransposed3d(NodeLowering& n, Endpoint x,
                                              Endpoint w, int64_t groups,
                                              const TransposedWindow& t) {
  const PartialShape image = n.shape(x), filter = n.shape(w);
  if (groups != 1 || !image.is_static() || !filter.is_static() ||
      t.window.has_dilations()) {
    return absl::UnimplementedError(
        "groups, dilations or sizes that are not known are not supported in "
        "three dimensions");
  }
  std::vector<int64_t> full = {image.dim(0)}, begin = {0},
                       size = {image.dim(0)};
  std::vector<int64_t> behind = {0, 0};
  for (size_t i = 0; i < 3; ++i) {
    const int axis = static_cast<int>(i);
    const int64_t all =
        (image.dim(axis + 1) - 1) * t.window.strides[i] + t.window.extent(axis);
    full.push_back(all);
    begin.push_back(t.window.pads_before[i]);
    size.push_back(all + t.more[i] - t.window.pads_before[i] -
                   t.window.pads_after[i]);
    behind.insert(behind.end(), {0, t.more[i]});
  }
  behind.insert(behind.end(), {0, 0});
  for (std::vector<int64_t>* list : {&full, &size})
    list->push_back(filter.dim(1));
  begin.push_back(0);
  const Endpoint y =
      n.Add("Conv3DBackpropInputV2",
            {n.Int32s(full), n.Transpose(w, {2, 3, 4, 1, 0}), x},
            {{"strides", OverImage(t.window.strides)}, {"padding", "VALID"}});
  const Endpoint table = n.Add("Reshape", {n.Int32s(behind), n.Int32s({5, 2})});
  const Endpoint padded = n.Add("PadV2", {y, table, n.ScalarLike(y, 0)});
  return n.Add("Slice", {padded, n.Int32s(begin), n.Int32s(size)});
}

absl::Status LowerConvTranspose(NodeLowering& n) {
  const Endpoint x = n.input(0), w = n.input(1);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(w));
  if (rank < 3 || rank > 5) {
    return absl::UnimplementedError(
        absl::StrCat("transposed convolution over ", rank - 2, " dimensions"));
  }
  const PartialShape filter = n.shape(w);
  const int64_t groups = n.Int("group", 1);
  if (groups < 1 || groups > (1 << 20)) {
    return absl::InvalidArgumentError(absl::StrCat("group is ", groups));
  }
  std::vector<int64_t> sizes(static_cast<size_t>(rank - 2), -1);
  const PartialShape& image = n.shape(x);
  if (image.has_rank() && image.rank() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a filter of ", rank, " dimensions on an image of ", image.rank()));
  }
  for (int i = 2; i < rank && image.has_rank(); ++i) {
    sizes[static_cast<size_t>(i - 2)] = image.dim(i);
  }
  OPTFARM_ASSIGN_OR_RETURN(TransposedWindow t,
                           ReadTransposedWindow(n, filter, sizes));
  Endpoint y = n.ToChannelsLast(x, rank);
  if (rank == 3) {
    t.more.insert(t.more.begin(), 0);
    y = ConvolveTransposed2d(n, n.Unsqueeze(y, {1}), n.Unsqueeze(w, {2}),
                             groups, InTwoDimensions(t.window), t.more);
  } else if (rank == 4) {
    y = ConvolveTransposed2d(n, y, w, groups, t.window, t.more);
  } else {
    OPTFARM_ASSIGN_OR_RETURN(y, ConvolveTransposed3d(n, y, w, groups, t));
  }
  if (n.has_input(2)) y = n.Add("BiasAdd", {y, n.input(2)});
  if (rank == 3) y = n.Squeeze(y, {1});
  n.SetOutput(0, n.ToChannelsFirst(y, rank));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"ConvTranspose", LowerConvTranspose},
};

}  // namespace

absl::Span<const LoweringRow> TransposedConvolutionLowerings() { return kRows; }

}  // namespace optfarm::formats
