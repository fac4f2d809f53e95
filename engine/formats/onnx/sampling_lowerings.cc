// Images that are read between their pixels: grids of places, and convolution
// over places that are moved.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// UNITS: elements of a table of places that is made here.
constexpr int64_t kMostPlaces = int64_t{1} << 24;

absl::Status LowerGridSample(NodeLowering& n) {
  std::string mode = n.String("mode", n.opset() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  n.SetOutput(0, n.Add("GridSample", {n.input(0), n.input(1)},
                       {{"mode", mode},
                        {"padding_mode", n.String("padding_mode", "zeros")},
                        {"align_corners", n.Int("align_corners", 0) != 0}}));
  return absl::OkStatus();
}

// --- AffineGrid --------------------------------------------------------------

// Where place i of `size` lies between -1 and 1.
float PlaceOf(int64_t i, int64_t size, bool align_corners) {
  if (align_corners) {
    if (size < 2) return -1;
    return static_cast<float>(-1 + 2 * static_cast<double>(i) /
                                       static_cast<double>(size - 1));
  }
  return static_cast<float>(
      (2 * static_cast<double>(i) + 1) / static_cast<double>(size) - 1);
}

// Rows (x, y, 1) or (x, y, z, 1) for each place of an image, x changing
// fastest; `sizes` of the image from outside in.
Endpoint BaseGrid(NodeLowering& n, const std::vector<int64_t>& sizes,
                  bool align_corners) {
  int64_t places = 1;
  for (const int64_t size : sizes) places *= size;
  const size_t rank = sizes.size();
  std::vector<float> rows;
  rows.reserve(static_cast<size_t>(places) * (rank + 1));
  for (int64_t p = 0; p < places; ++p) {
    int64_t left = p;
    for (size_t d = rank; d-- > 0;) {
      rows.push_back(PlaceOf(left % sizes[d], sizes[d], align_corners));
      left /= sizes[d];
    }
    rows.push_back(1);
  }
  return n.Reshape(n.builder().Floats(rows),
                   {places, static_cast<int64_t>(rank) + 1});
}

absl::Status LowerAffineGrid(NodeLowering& n) {
  const Endpoint theta = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size, n.RequireInts(1));
  if (size.size() != 4 && size.size() != 5) {
    return absl::InvalidArgumentError(
        absl::StrCat("a size of ", size.size(), " numbers"));
  }
  const std::vector<int64_t> image(size.begin() + 2, size.end());
  int64_t places = 1;
  for (const int64_t one : image) {
    if (one < 1 || one > kMostPlaces / places) {
      return absl::UnimplementedError(
          absl::StrCat("a grid with a side of ", one));
    }
    places *= one;
  }
  const bool align_corners = n.Int("align_corners", 0) != 0;
  const Endpoint base = n.Unsqueeze(
      n.Cast(BaseGrid(n, image, align_corners), n.dtype(theta)), {0});
  const Endpoint grid =
      n.Add("BatchMatMulV2", {base, theta}, {{"adj_y", true}});
  std::vector<int64_t> shape = {-1};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(static_cast<int64_t>(image.size()));
  n.SetOutput(0, n.Reshape(grid, shape));
  return absl::OkStatus();
}

// --- DeformConv --------------------------------------------------------------

struct DeformedImage {
  int64_t channels = 0, height = 0, width = 0;
  int64_t rows = 0, columns = 0;
  int64_t groups = 1, offset_groups = 1;
  int64_t kernel_height = 0, kernel_width = 0, filters = 0;

  int64_t taps() const { return kernel_height * kernel_width; }
};

absl::StatusOr<DeformedImage> ReadDeformedImage(NodeLowering& n) {
  const PartialShape& x = n.shape(n.input(0));
  const PartialShape& w = n.shape(n.input(1));
  const PartialShape& offset = n.shape(n.input(2));
  if (!x.has_rank() || !w.is_static() || !offset.has_rank() || x.rank() != 4 ||
      w.rank() != 4 || offset.rank() != 4 || x.dim(1) < 1 || x.dim(2) < 1 ||
      x.dim(3) < 1 || offset.dim(2) < 1 || offset.dim(3) < 1) {
    return absl::UnimplementedError(
        "an image of two dimensions and known size is needed");
  }
  DeformedImage image{x.dim(1), x.dim(2), x.dim(3), offset.dim(2),
                      offset.dim(3)};
  image.groups = n.Int("group", 1);
  image.offset_groups = n.Int("offset_group", 1);
  image.filters = w.dim(0);
  image.kernel_height = w.dim(2);
  image.kernel_width = w.dim(3);
  if (image.groups < 1 || image.offset_groups < 1 || image.taps() < 1 ||
      image.channels % image.groups != 0 ||
      image.channels % image.offset_groups != 0 ||
      image.filters % image.groups != 0 ||
      w.dim(1) != image.channels / image.groups ||
      offset.dim(1) != 2 * image.offset_groups * image.taps()) {
    return absl::InvalidArgumentError(
        "channels, groups and offsets do not fit");
  }
  if (image.rows > kMostPlaces / image.columns / image.taps()) {
    return absl::UnimplementedError("too many places");
  }
  return image;
}

// Where each tap of each place would be without an offset, in pixels: y and x,
// each (taps, rows, columns).
absl::StatusOr<std::pair<Endpoint, Endpoint>> UnmovedPlaces(
    NodeLowering& n, const DeformedImage& image) {
  const auto two = [&](absl::string_view name, size_t count,
                       int64_t absent) -> absl::StatusOr<std::vector<int64_t>> {
    std::vector<int64_t> values = n.Ints(name);
    if (values.empty()) values.assign(count, absent);
    if (values.size() == count) return values;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has ", values.size(), " numbers"));
  };
  OPTFARM_ASSIGN_OR_RETURN(const auto pads, two("pads", 4, 0));
  OPTFARM_ASSIGN_OR_RETURN(const auto strides, two("strides", 2, 1));
  OPTFARM_ASSIGN_OR_RETURN(const auto dilations, two("dilations", 2, 1));
  std::vector<float> y, x;
  for (int64_t ky = 0; ky < image.kernel_height; ++ky) {
    for (int64_t kx = 0; kx < image.kernel_width; ++kx) {
      for (int64_t row = 0; row < image.rows; ++row) {
        for (int64_t column = 0; column < image.columns; ++column) {
          y.push_back(static_cast<float>(row * strides[0] - pads[0] +
                                         ky * dilations[0]));
          x.push_back(static_cast<float>(column * strides[1] - pads[1] +
                                         kx * dilations[1]));
        }
      }
    }
  }
  const std::vector<int64_t> shape = {image.taps(), image.rows, image.columns};
  return std::make_pair(n.Reshape(n.builder().Floats(y), shape),
                        n.Reshape(n.builder().Floats(x), shape));
}

// A place in pixels as GridSample counts, from -1 to 1 over the whole image.
Endpoint AsGridPlace(NodeLowering& n, Endpoint pixels, int64_t size) {
  const double step = 2.0 / static_cast<double>(size);
  return n.Add("Add", {n.Add("Mul", {pixels, n.ScalarLike(pixels, step)}),
                       n.ScalarLike(pixels, step / 2 - 1)});
}

// What each tap reads: (batch, channels * taps, rows * columns).
absl::StatusOr<Endpoint> MovedTaps(NodeLowering& n,
                                   const DeformedImage& image) {
  const Endpoint x = n.input(0);
  const DataType type = n.dtype(x);
  const int64_t taps = image.taps(), rows = image.rows;
  const Endpoint offset =
      n.Reshape(n.input(2), {-1, taps, 2, rows, image.columns});
  const std::vector<Endpoint> moves =
      n.AddAll("Unpack", {offset}, {{"num", 2}, {"axis", 2}});
  if (moves.size() != 2) return Endpoint();
  OPTFARM_ASSIGN_OR_RETURN(const auto unmoved, UnmovedPlaces(n, image));
  const Endpoint y = n.Add("Add", {moves[0], n.Cast(unmoved.first, type)});
  const Endpoint across =
      n.Add("Add", {moves[1], n.Cast(unmoved.second, type)});
  const Endpoint grid = n.Add(
      "Pack",
      {AsGridPlace(n, across, image.width), AsGridPlace(n, y, image.height)},
      {{"axis", 4}});
  const int64_t part = image.channels / image.offset_groups;
  Endpoint read = n.Add("GridSample",
                        {n.Reshape(x, {-1, part, image.height, image.width}),
                         n.Reshape(grid, {-1, taps * rows, image.columns, 2})},
                        {{"mode", "linear"},
                         {"padding_mode", "zeros"},
                         {"align_corners", false}});
  if (n.has_input(4)) {
    read = n.Add("Mul", {read, n.Reshape(n.input(4),
                                         {-1, 1, taps * rows, image.columns})});
  }
  return n.Reshape(read, {-1, image.channels * taps, rows * image.columns});
}

absl::Status LowerDeformConv(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const DeformedImage image, ReadDeformedImage(n));
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint taps, MovedTaps(n, image));
  const int64_t depth = image.channels / image.groups * image.taps();
  const int64_t places = image.rows * image.columns;
  const Endpoint y =
      n.Add("BatchMatMulV2",
            {n.Reshape(n.input(1),
                       {1, image.groups, image.filters / image.groups, depth}),
             n.Reshape(taps, {-1, image.groups, depth, places})});
  Endpoint result =
      n.Reshape(y, {-1, image.filters, image.rows, image.columns});
  if (n.has_input(3)) {
    result =
        n.Add("Add", {result, n.Reshape(n.input(3), {1, image.filters, 1, 1})});
  }
  n.SetOutput(0, result);
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"AffineGrid", LowerAffineGrid},
    {"DeformConv", LowerDeformConv},
    {"GridSample", LowerGridSample},
};

}  // namespace

absl::Span<const LoweringRow> SamplingLowerings() { return kRows; }

}  // namespace optfarm::formats
