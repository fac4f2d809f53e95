// Operators that cut, repeat and make tensors, and those that rearrange
// blocks of images.

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/tensors.h"

namespace optfarm::formats {
namespace {

// --- Slice -------------------------------------------------------------------

struct SliceBounds {
  std::vector<int64_t> starts, ends, axes, steps;
};

// StridedSlice over all dimensions up to the last one that is sliced.
// REQUIRES: axes count from the front.
Endpoint AddStridedSlice(NodeLowering& n, Endpoint x,
                         const SliceBounds& bounds) {
  int64_t last = -1;
  for (const int64_t axis : bounds.axes) last = std::max(last, axis);
  const size_t count = static_cast<size_t>(last + 1);
  std::vector<int64_t> begin(count, 0), end(count, 0), strides(count, 1);
  int64_t whole = (int64_t{1} << count) - 1;
  for (size_t i = 0; i < bounds.axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(bounds.axes[i]);
    begin[axis] = bounds.starts[i];
    end[axis] = bounds.ends[i];
    strides[axis] = bounds.steps[i];
    whole &= ~(int64_t{1} << axis);
  }
  return n.Add("StridedSlice",
               {x, n.Int32s(begin), n.Int32s(end), n.Int32s(strides)},
               {{"begin_mask", whole}, {"end_mask", whole}});
}

// nullopt where something of the bounds is known only at run time, or an axis
// counts from an end that is not known.
std::optional<SliceBounds> KnownBounds(NodeLowering& n, Endpoint x) {
  SliceBounds bounds;
  std::vector<int64_t>* const lists[] = {&bounds.starts, &bounds.ends,
                                         &bounds.axes, &bounds.steps};
  const bool has_attrs = n.opset() < 10;
  const char* const names[] = {"starts", "ends", "axes", ""};
  for (int i = 0; i < 4; ++i) {
    if (has_attrs) {
      *lists[i] = n.Ints(names[i]);
    } else if (n.has_input(i + 1)) {
      auto known = n.KnownInts(n.input(i + 1));
      if (!known.has_value()) return std::nullopt;
      *lists[i] = *std::move(known);
    }
  }
  const size_t count = bounds.starts.size();
  if (bounds.axes.empty()) {
    for (size_t i = 0; i < count; ++i) {
      bounds.axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (bounds.steps.empty()) bounds.steps.assign(count, 1);
  if (bounds.ends.size() != count || bounds.axes.size() != count ||
      bounds.steps.size() != count) {
    return std::nullopt;
  }
  const PartialShape& shape = n.shape(x);
  // One bit for each dimension of the masks.
  constexpr int64_t kMostAxes = 30;
  for (int64_t& axis : bounds.axes) {
    if (axis < 0 && shape.has_rank()) axis += shape.rank();
    if (axis < 0 || axis >= kMostAxes) return std::nullopt;
  }
  return bounds;
}

absl::Status LowerSlice(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const auto bounds = KnownBounds(n, x);
  if (bounds.has_value()) {
    n.SetOutput(0, bounds->axes.empty() ? n.Add("Identity", {x})
                                        : AddStridedSlice(n, x, *bounds));
    return absl::OkStatus();
  }
  if (n.opset() < 10) {
    return absl::InvalidArgumentError(
        "starts, ends and axes must be lists of one length");
  }
  const DataType type = tensorflow::DT_INT64;
  n.SetOutput(0, n.Add("SliceAxes",
                       {x, n.Cast(n.input(1), type), n.Cast(n.input(2), type),
                        InputOrEmpty(n, 3, type), InputOrEmpty(n, 4, type)}));
  return absl::OkStatus();
}

// --- Split -------------------------------------------------------------------

// Sizes of the parts where the file does not list them; empty for equal parts
// of a size that is known at run time.
absl::StatusOr<std::vector<int64_t>> EqualParts(NodeLowering& n, int64_t size,
                                                int64_t parts) {
  if (size == graph::kUnknownDim) return std::vector<int64_t>();
  // The last part is smaller where the size does not divide.
  const int64_t part = (size + parts - 1) / parts;
  std::vector<int64_t> sizes(static_cast<size_t>(parts), part);
  sizes.back() = size - part * (parts - 1);
  if (sizes.back() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(size, " elements do not split into ", parts, " parts"));
  }
  return sizes;
}

absl::Status LowerSplit(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const int64_t parts = n.output_count();
  const PartialShape shape = n.shape(x);
  int64_t axis = n.Int("axis", 0);
  if (shape.has_rank()) {
    OPTFARM_ASSIGN_OR_RETURN(axis, NodeLowering::Axis(axis, shape.rank()));
  }
  Endpoint sizes;
  if (n.opset() >= 13 && n.has_input(1)) {
    sizes = n.Cast(n.input(1), tensorflow::DT_INT64);
  } else {
    std::vector<int64_t> list =
        n.opset() < 13 ? n.Ints("split") : std::vector<int64_t>();
    if (list.empty()) {
      const int64_t size = shape.has_rank() ? shape.dim(static_cast<int>(axis))
                                            : graph::kUnknownDim;
      OPTFARM_ASSIGN_OR_RETURN(list, EqualParts(n, size, parts));
    }
    if (!list.empty()) sizes = n.Int64s(list);
  }
  if (parts == 1) {
    n.SetOutput(0, n.Add("Identity", {x}));
    return absl::OkStatus();
  }
  const std::vector<Endpoint> made =
      sizes.node == graph::kNoNode
          ? n.AddAll("Split", {n.Int32(axis), x}, {{"num_split", parts}})
          : n.AddAll("SplitV", {x, sizes, n.Int32(axis)},
                     {{"num_split", parts}});
  for (size_t i = 0; i < made.size(); ++i) {
    n.SetOutput(static_cast<int>(i), made[i]);
  }
  return absl::OkStatus();
}

// --- Shapes and sources ------------------------------------------------------

absl::Status LowerCenterCropPad(NodeLowering& n) {
  n.SetOutput(0, n.Add("CenterCropPad", {n.input(0), n.input(1)},
                       {{"axes", n.Ints("axes")}}));
  return absl::OkStatus();
}

absl::Status LowerTile(NodeLowering& n) {
  if (n.opset() < 6) {
    return absl::UnimplementedError("its form before version 6");
  }
  n.SetOutput(0, n.Add("Tile", {n.input(0), n.input(1)}));
  return absl::OkStatus();
}

absl::Status LowerExpand(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint shape = n.Cast(n.input(1), tensorflow::DT_INT64);
  n.SetOutput(0, n.Add("BroadcastTo",
                       {x, n.Add("BroadcastArgs", {n.ShapeOf(x), shape})}));
  return absl::OkStatus();
}

absl::Status LowerShape(NodeLowering& n) {
  const Endpoint shape = n.ShapeOf(n.input(0));
  const bool has_bounds = n.has_attr("start") || n.has_attr("end");
  if (!has_bounds) {
    n.SetOutput(0, shape);
    return absl::OkStatus();
  }
  const int64_t end =
      n.Int("end", int64_t{std::numeric_limits<int32_t>::max()});
  n.SetOutput(0, n.Add("StridedSlice", {shape, n.Int32s({n.Int("start", 0)}),
                                        n.Int32s({end}), n.Int32s({1})}));
  return absl::OkStatus();
}

absl::Status LowerSize(NodeLowering& n) {
  n.SetOutput(
      0, n.Add("Size", {n.input(0)}, {{"out_type", tensorflow::DT_INT64}}));
  return absl::OkStatus();
}

absl::Status LowerConstantOfShape(NodeLowering& n) {
  Endpoint value = n.builder().Scalar(tensorflow::DT_FLOAT, 0);
  if (const onnx::TensorProto* tensor = n.Tensor("value")) {
    OPTFARM_ASSIGN_OR_RETURN(tensorflow::TensorProto constant,
                             ReadOnnxTensor(*tensor, ""));
    value = AsScalar(n, n.builder().Constant(std::move(constant)));
  }
  n.SetOutput(0, n.Add("Fill", {n.input(0), value}));
  return absl::OkStatus();
}

absl::Status LowerRange(NodeLowering& n) {
  const DataType type = n.dtype(n.input(0));
  // Range computes in these only.
  const bool is_plain = IsFloatingType(type) || type == tensorflow::DT_INT32 ||
                        type == tensorflow::DT_INT64;
  std::vector<Endpoint> bounds;
  for (int i = 0; i < 3; ++i) {
    const Endpoint bound = AsScalar(n, n.input(i));
    bounds.push_back(is_plain ? bound : n.Cast(bound, tensorflow::DT_INT64));
  }
  n.SetOutput(0, n.Cast(n.Add("Range", bounds), type));
  return absl::OkStatus();
}

// --- Blocks of images --------------------------------------------------------

// The order of channels that makes the plain form of the column-row-depth one:
// depth is the slowest there, the fastest here.
std::vector<int64_t> DepthFirstOrder(int64_t channels, int64_t block) {
  const int64_t depth = channels / (block * block);
  std::vector<int64_t> order;
  for (int64_t place = 0; place < block * block; ++place) {
    for (int64_t c = 0; c < depth; ++c) {
      order.push_back(c * block * block + place);
    }
  }
  return order;
}

absl::Status LowerDepthToSpace(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const int64_t block = n.Int("blocksize", 0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank != 4 || block < 1) {
    return absl::InvalidArgumentError("it takes images and a block size");
  }
  const std::string mode = n.String("mode", "DCR");
  const int64_t channels = n.shape(x).dim(1);
  Endpoint image = n.ToChannelsLast(x, rank);
  if (mode == "CRD") {
    constexpr int64_t kMostChannels = int64_t{1} << 20;
    if (channels < 0 || channels > kMostChannels || block > kMostChannels ||
        channels % (block * block) != 0) {
      return absl::UnimplementedError(absl::StrCat(
          "mode CRD of ", channels, " channels in blocks of ", block));
    }
    image =
        n.Add("GatherV2",
              {image, n.Int32s(DepthFirstOrder(channels, block)), n.Int32(3)});
  } else if (mode != "DCR") {
    return absl::InvalidArgumentError(absl::StrCat("mode '", mode, "'"));
  }
  if (block > 1) {
    image = n.Add("DepthToSpace", {image}, {{"block_size", block}});
  }
  n.SetOutput(0, n.ToChannelsFirst(image, rank));
  return absl::OkStatus();
}

absl::Status LowerSpaceToDepth(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const int64_t block = n.Int("blocksize", 0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  if (rank != 4 || block < 1) {
    return absl::InvalidArgumentError("it takes images and a block size");
  }
  if (block == 1) {
    n.SetOutput(0, n.Add("Identity", {x}));
    return absl::OkStatus();
  }
  const Endpoint y = n.Add("SpaceToDepth", {n.ToChannelsLast(x, rank)},
                           {{"block_size", block}});
  n.SetOutput(0, n.ToChannelsFirst(y, rank));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"CenterCropPad", LowerCenterCropPad},
    {"ConstantOfShape", LowerConstantOfShape},
    {"DepthToSpace", LowerDepthToSpace},
    {"Expand", LowerExpand},
    {"Range", LowerRange},
    {"Shape", LowerShape},
    {"Size", LowerSize},
    {"Slice", LowerSlice},
    {"SpaceToDepth", LowerSpaceToDepth},
    {"Split", LowerSplit},
    {"Tile", LowerTile},
};

}  // namespace

absl::Span<const LoweringRow> SlicingLowerings() { return kRows; }

}  // namespace optfarm::formats
