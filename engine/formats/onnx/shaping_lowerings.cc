// Operators that give elements another shape or order.

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/broadcasting.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// The new shape where some of its sizes are 0: those of the input.
absl::StatusOr<Endpoint> ShapeWithCopies(NodeLowering& n, Endpoint x,
                                         Endpoint shape) {
  const auto known = n.KnownInts(shape);
  if (known.has_value() &&
      std::find(known->begin(), known->end(), 0) == known->end()) {
    return shape;
  }
  const PartialShape from = n.shape(x);
  if (known.has_value()) {
    std::vector<int64_t> dims = *known;
    bool any_unknown = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != 0) continue;
      if (from.has_rank() && static_cast<int>(i) >= from.rank()) {
        return absl::InvalidArgumentError(
            absl::StrCat("size ", i,
                         " of the new shape is the input's, which "
                         "has ",
                         from.rank(), " dimensions"));
      }
      dims[i] = from.has_rank() ? from.dim(static_cast<int>(i)) : -1;
      any_unknown = any_unknown || dims[i] == graph::kUnknownDim;
    }
    if (!any_unknown || std::count(dims.begin(), dims.end(), -1) == 1) {
      return n.Int64s(dims);
    }
  } else if (n.builder().PartialInts(shape) != nullptr) {
    // Computed sizes are not meant as copies.
    const auto& elements = n.builder().PartialInts(shape)->elements;
    if (std::find(elements.begin(), elements.end(), 0) == elements.end()) {
      return shape;
    }
  }
  const PartialShape& carrier = n.shape(shape);
  if (!carrier.is_static() || carrier.rank() != 1) {
    return absl::UnimplementedError(
        "the number of dimensions of its result is known only at run time");
  }
  const int64_t count = carrier.dim(0);
  const Endpoint filled =
      n.Add("ConcatV2",
            {n.ShapeOf(x),
             n.Int64s(std::vector<int64_t>(static_cast<size_t>(count), 0)),
             n.Int32(0)});
  const Endpoint old =
      n.Add("StridedSlice",
            {filled, n.Int32s({0}), n.Int32s({count}), n.Int32s({1})});
  const Endpoint is_copy = n.Add("Equal", {shape, n.ScalarLike(shape, 0)});
  return n.Add("SelectV2", {is_copy, old, shape});
}

// Whether ShapeWithCopies has no way to say the new shape.
bool HasUnknownLength(NodeLowering& n, Endpoint shape) {
  return !n.KnownInts(shape).has_value() &&
         n.builder().PartialInts(shape) == nullptr &&
         !n.shape(shape).is_static();
}

absl::Status LowerReshape(NodeLowering& n) {
  const Endpoint x = n.input(0);
  Endpoint shape = n.opset() < 5 ? n.Int64s(n.Ints("shape"))
                                 : n.Cast(n.input(1), tensorflow::DT_INT64);
  const bool allow_zero = n.Int("allowzero", 0) != 0;
  if (allow_zero ? !n.KnownInts(shape).has_value()
                 : HasUnknownLength(n, shape)) {
    n.SetOutput(0,
                n.Add("ReshapeCopy", {x, shape}, {{"allow_zero", allow_zero}}));
    return absl::OkStatus();
  }
  if (!allow_zero) {
    OPTFARM_ASSIGN_OR_RETURN(shape, ShapeWithCopies(n, x, shape));
  }
  n.SetOutput(0, n.Add("Reshape", {x, shape}));
  return absl::OkStatus();
}

absl::Status LowerFlatten(NodeLowering& n) {
  const Endpoint x = n.input(0);
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  const int64_t axis = n.Int("axis", 1);
  if (axis < -rank || axis > rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis));
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Endpoint y,
      FlattenTo2d(n, x, static_cast<int>(axis < 0 ? axis + rank : axis)));
  n.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status LowerTranspose(NodeLowering& n) {
  const Endpoint x = n.input(0);
  std::vector<int64_t> order = n.Ints("perm");
  if (!n.has_attr("perm")) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    for (int i = rank - 1; i >= 0; --i) order.push_back(i);
  }
  const Endpoint y = n.Transpose(x, order);
  n.SetOutput(0, y == x ? n.Add("Identity", {x}) : y);
  return absl::OkStatus();
}

absl::Status LowerConcat(NodeLowering& n) {
  std::vector<Endpoint> parts = n.inputs();
  if (parts.size() == 1) {
    n.SetOutput(0, n.Add("Identity", parts));
    return absl::OkStatus();
  }
  int64_t axis = n.Int("axis", 1);
  for (const Endpoint& part : parts) {
    const PartialShape& shape = n.shape(part);
    if (axis < 0 && shape.has_rank()) axis += shape.rank();
  }
  parts.push_back(n.Int32(axis));
  n.SetOutput(0, n.Add("ConcatV2", parts));
  return absl::OkStatus();
}

// Axes of an attribute before version 13, of input 1 since.
absl::StatusOr<std::vector<int64_t>> Axes(NodeLowering& n) {
  if (n.opset() < 13) return n.Ints("axes");
  if (!n.has_input(1)) return std::vector<int64_t>();
  return n.RequireInts(1);
}

absl::StatusOr<std::vector<int64_t>> Normalized(std::vector<int64_t> axes,
                                                int rank) {
  for (int64_t& axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(axis, NodeLowering::Axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Whether the axes are known only while the model runs.
bool HasComputedAxes(NodeLowering& n) {
  return n.opset() >= 13 && n.has_input(1) &&
         !n.KnownInts(n.input(1)).has_value();
}

absl::Status LowerSqueeze(NodeLowering& n) {
  const Endpoint x = n.input(0);
  if (HasComputedAxes(n)) {
    n.SetOutput(0, n.Add("SqueezeAxes", {x, n.input(1)}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, Axes(n));
  if (!n.shape(x).has_rank()) {
    // Squeeze itself knows axes from the end.
    n.SetOutput(0, n.Add("Squeeze", {x}, {{"squeeze_dims", axes}}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(axes,
                           Normalized(std::move(axes), n.shape(x).rank()));
  n.SetOutput(0, n.Add("Squeeze", {x}, {{"squeeze_dims", axes}}));
  return absl::OkStatus();
}

absl::Status LowerUnsqueeze(NodeLowering& n) {
  const Endpoint x = n.input(0);
  if (HasComputedAxes(n)) {
    n.SetOutput(0, n.Add("UnsqueezeAxes", {x, n.input(1)}));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, Axes(n));
  const bool from_end = std::any_of(axes.begin(), axes.end(),
                                    [](int64_t axis) { return axis < 0; });
  // Without the rank, one axis from the end is ExpandDims' own meaning.
  if (!n.shape(x).has_rank() && (!from_end || axes.size() == 1)) {
    std::sort(axes.begin(), axes.end());
    n.SetOutput(0, n.Unsqueeze(x, axes));
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
  OPTFARM_ASSIGN_OR_RETURN(
      axes, Normalized(std::move(axes), rank + static_cast<int>(axes.size())));
  n.SetOutput(0, axes.empty() ? n.Add("Identity", {x}) : n.Unsqueeze(x, axes));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Concat", LowerConcat},       {"Flatten", LowerFlatten},
    {"Reshape", LowerReshape},     {"Squeeze", LowerSqueeze},
    {"Transpose", LowerTranspose}, {"Unsqueeze", LowerUnsqueeze},
};

}  // namespace

absl::Span<const LoweringRow> ShapingLowerings() { return kRows; }

}  // namespace optfarm::formats
