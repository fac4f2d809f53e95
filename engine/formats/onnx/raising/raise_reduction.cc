// Reductions along axes, and where the largest element is.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

struct ReducedAxes {
  std::vector<int> in_graph;
  std::vector<int64_t> in_file;
  bool keep_dims = false;
  AxisOrder order, order_after;
};

absl::StatusOr<ReducedAxes> ReadAxes(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                           n.Integers(1, "which axes are reduced"));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  ReducedAxes reduced;
  OPTFARM_ASSIGN_OR_RETURN(reduced.keep_dims,
                           graph::GetBoolOr(n.def(), "keep_dims", false));
  reduced.order = n.OrderOf(0);
  for (int64_t axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int in_graph, n.Axis(axis, rank));
    reduced.in_graph.push_back(in_graph);
    reduced.in_file.push_back(AxisInFile(reduced.order, in_graph));
  }
  std::sort(reduced.in_file.begin(), reduced.in_file.end());
  reduced.order_after = reduced.keep_dims
                            ? reduced.order
                            : OrderWithout(reduced.order, reduced.in_graph);
  return reduced;
}

absl::Status Reduce(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const ReducedAxes axes, ReadAxes(n));
  const ValueId x = n.In(0, axes.order);
  if (axes.in_file.empty()) {
    n.Set(x, axes.order);
    return absl::OkStatus();
  }
  n.Set(n.Reduce(n.onnx_op(), x, axes.in_file, axes.keep_dims),
        axes.order_after);
  return absl::OkStatus();
}

// ONNX does not reduce booleans; as numbers all are true where the least is 1.
absl::Status ReduceBool(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const ReducedAxes axes, ReadAxes(n));
  const ValueId x = n.In(0, axes.order);
  if (axes.in_file.empty()) {
    n.Set(x, axes.order);
    return absl::OkStatus();
  }
  const ValueId numbers = n.Cast(x, tensorflow::DT_BOOL, tensorflow::DT_INT32);
  const ValueId reduced =
      n.Reduce(n.onnx_op(), numbers, axes.in_file, axes.keep_dims);
  n.Set(n.Cast(reduced, tensorflow::DT_INT32, tensorflow::DT_BOOL),
        axes.order_after);
  return absl::OkStatus();
}

absl::Status ArgMax(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  int64_t given = 0;
  if (n.input_count() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(given, n.Integer(1, "the axis"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int axis, n.Axis(given, rank));
  const AxisOrder order = n.OrderOf(0);
  const ValueId index = n.Emit(
      n.onnx_op(), {n.In(0, order)},
      {{"axis", int64_t{AxisInFile(order, axis)}}, {"keepdims", int64_t{0}}});
  n.Set(n.Cast(index, tensorflow::DT_INT64, n.OutType()),
        OrderWithout(order, {axis}));
  return absl::OkStatus();
}

absl::Status Cumsum(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool exclusive,
                           graph::GetBoolOr(n.def(), "exclusive", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool reverse,
                           graph::GetBoolOr(n.def(), "reverse", false));
  n.Set(n.Emit("CumSum", {n.In(0), n.In(1)},
               {{"exclusive", int64_t{exclusive ? 1 : 0}},
                {"reverse", int64_t{reverse ? 1 : 0}}}));
  return absl::OkStatus();
}

absl::Status L2Loss(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const ValueId sum =
      n.Emit("ReduceSumSquare", {n.In(0)}, {{"keepdims", int64_t{0}}});
  n.Set(n.Emit("Mul", {sum, n.Number(n.InType(0), 0.5)}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Sum", Reduce, "ReduceSum"},
    {"Mean", Reduce, "ReduceMean"},
    {"Max", Reduce, "ReduceMax"},
    {"Min", Reduce, "ReduceMin"},
    {"Prod", Reduce, "ReduceProd"},
    {"All", ReduceBool, "ReduceMin"},
    {"Any", ReduceBool, "ReduceMax"},
    {"ArgMax", ArgMax, "ArgMax"},
    {"ArgMin", ArgMax, "ArgMin"},
    {"Cumsum", Cumsum},
    {"L2Loss", L2Loss},
};

}  // namespace

absl::Span<const RaisingRow> ReductionRaisings() { return kRows; }

}  // namespace optfarm::formats
