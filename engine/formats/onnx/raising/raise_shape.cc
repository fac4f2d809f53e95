// Shapes: asking for them, changing them, and tensors that are made from them.

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// --- Asking ------------------------------------------------------------------

// Sizes in the graph's order.
ValueId ShapeOf(NodeRaiser& n, int index) {
  const AxisOrder order = n.OrderOf(index);
  const ValueId shape = n.Emit("Shape", {n.In(index, order)});
  if (order.empty()) return shape;
  std::vector<int64_t> places;
  for (size_t axis = 0; axis < order.size(); ++axis) {
    places.push_back(AxisInFile(order, static_cast<int>(axis)));
  }
  return n.Emit("Gather", {shape, n.Ints(places)}, {{"axis", int64_t{0}}});
}

absl::Status Shape(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  for (int i = 0; i < n.input_count(); ++i) {
    n.SetPort(i, n.Cast(ShapeOf(n, i), tensorflow::DT_INT64, n.OutType(i)));
  }
  return absl::OkStatus();
}

absl::Status Size(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const ValueId size = n.Emit("Size", {n.In(0, n.OrderOf(0))});
  n.Set(n.Cast(size, tensorflow::DT_INT64, n.OutType()));
  return absl::OkStatus();
}

absl::Status Rank(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const ValueId rank =
      n.Emit("Size", {n.Emit("Shape", {n.In(0, n.OrderOf(0))})});
  n.Set(n.Cast(rank, tensorflow::DT_INT64, n.OutType()));
  return absl::OkStatus();
}

// --- Changing ----------------------------------------------------------------

// The dimensions of the result with at most one -1; empty when more of them are
// not known.
std::vector<int64_t> KnownDims(const NodeRaiser& n) {
  const graph::PartialShape& shape = n.OutShape();
  if (!shape.has_rank() || shape.rank() == 0) return {};
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  const bool has_zero = std::count(dims.begin(), dims.end(), 0) > 0;
  const auto unknown = std::count(dims.begin(), dims.end(), -1);
  return unknown > 1 || (has_zero && unknown > 0) ? std::vector<int64_t>()
                                                  : dims;
}

// The input's bytes in the graph's order; the input as it is where that is the
// same.
ValueId InWithSameBytes(NodeRaiser& n) {
  const AxisOrder order = n.OrderOf(0);
  const graph::PartialShape& shape = n.InShape(0);
  const bool as_it_is = !order.empty() && shape.has_rank() &&
                        HaveSameBytes(shape.dims(), order, {});
  return n.In(0, as_it_is ? order : AxisOrder());
}

// To dimensions that are known; sizes of 0 are meant.
ValueId ReshapeTo(NodeRaiser& n, ValueId x, const std::vector<int64_t>& dims) {
  std::vector<OnnxAttribute> attributes;
  if (std::count(dims.begin(), dims.end(), 0) > 0 && n.opset() >= 14) {
    attributes.push_back({"allowzero", int64_t{1}});
  }
  return n.Emit("Reshape", {x, n.Ints(dims)}, std::move(attributes));
}

// Complex numbers have an axis of two parts behind all others.
absl::Status ReshapeComplex(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                           n.Integers(1, "the shape"));
  dims.push_back(2);
  n.Set(n.Reshape(n.In(0), dims));
  return absl::OkStatus();
}

absl::Status Reshape(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  if (n.InType(0) == tensorflow::DT_COMPLEX64) return ReshapeComplex(n);
  const ValueId x = InWithSameBytes(n);
  std::vector<int64_t> dims = KnownDims(n);
  if (dims.empty()) {
    if (const auto given = n.graph().IntegersOf(n.input(1))) dims = *given;
    if (dims.empty() && n.OutShape().has_rank() && n.OutShape().rank() == 0) {
      n.Set(n.Emit("Reshape", {x, n.Ints({})}));
      return absl::OkStatus();
    }
  }
  if (!dims.empty()) {
    n.Set(ReshapeTo(n, x, dims));
    return absl::OkStatus();
  }
  n.Set(n.Emit("Reshape", {x, n.InAsInt64(1)}));
  return absl::OkStatus();
}

absl::Status Squeeze(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> given,
                           graph::GetIntsOr(n.def(), "squeeze_dims", {}));
  std::vector<int> axes;
  for (int64_t axis : given) {
    OPTFARM_ASSIGN_OR_RETURN(const int in_graph, n.Axis(axis, rank));
    axes.push_back(in_graph);
  }
  for (int axis = 0; given.empty() && axis < rank; ++axis) {
    if (n.InShape(0).dim(axis) < 0) {
      return absl::FailedPreconditionError(
          "which axes have one element is not known before the graph runs");
    }
    if (n.InShape(0).dim(axis) == 1) axes.push_back(axis);
  }
  const AxisOrder order = n.OrderOf(0);
  const ValueId x = n.In(0, order);
  if (axes.empty()) {
    n.Set(x, order);
    return absl::OkStatus();
  }
  std::vector<int64_t> in_file;
  for (int axis : axes) in_file.push_back(AxisInFile(order, axis));
  std::sort(in_file.begin(), in_file.end());
  n.Set(n.Squeeze(x, in_file), OrderWithout(order, axes));
  return absl::OkStatus();
}

absl::Status ExpandDims(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t given, n.Integer(1, "the axis"));
  const AxisOrder order = n.OrderOf(0);
  int64_t axis = given;
  if (given < 0) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
    OPTFARM_ASSIGN_OR_RETURN(axis, n.Axis(given, rank + 1));
  }
  if (!order.empty() && axis > static_cast<int64_t>(order.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " is out of range"));
  }
  n.Set(n.Unsqueeze(n.In(0, order), {axis}),
        OrderWith(order, static_cast<int>(axis)));
  return absl::OkStatus();
}

// --- Made from shapes --------------------------------------------------------

absl::Status Fill(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  n.Set(n.Emit("Expand", {n.In(1), n.InAsInt64(0)}));
  return absl::OkStatus();
}

absl::Status BroadcastTo(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  n.Set(n.Emit("Expand", {n.In(0), n.InAsInt64(1)}));
  return absl::OkStatus();
}

absl::Status Range(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  n.Set(n.Emit("Range", {n.In(0), n.In(1), n.In(2)}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Shape", Shape},
    {"ShapeN", Shape},
    {"Size", Size},
    {"Rank", Rank},
    {.op = "Reshape", .raise = Reshape, .takes_complex = true},
    {"Squeeze", Squeeze},
    {"ExpandDims", ExpandDims},
    {"Fill", Fill},
    {"BroadcastTo", BroadcastTo},
    {"Range", Range},
};

}  // namespace

absl::Span<const RaisingRow> ShapeRaisings() { return kRows; }

}  // namespace optfarm::formats
