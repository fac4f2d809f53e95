// Reductions over axes, sorting and running sums.

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// Axes of a reduction as a tensor, and whether its result keeps them.
struct Reduction {
  Endpoint axes;
  bool keep_dims = true;

  Endpoint Of(NodeLowering& n, absl::string_view op, Endpoint x,
              bool keeps) const {
    return n.Add(op, {x, axes}, {{"keep_dims", keeps}});
  }
  Endpoint Of(NodeLowering& n, absl::string_view op, Endpoint x) const {
    return Of(n, op, x, keep_dims);
  }
};

Endpoint AllAxes(NodeLowering& n, Endpoint x) {
  const PartialShape& shape = n.shape(x);
  if (!shape.has_rank()) {
    return n.Add("Range", {n.Int32(0), n.Add("Rank", {x}), n.Int32(1)});
  }
  std::vector<int64_t> axes(static_cast<size_t>(shape.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return n.Int32s(axes);
}

// Axes were an attribute before version 18 (of ReduceSum: 13), input 1 since.
// None means all of them, unless the node says that it means none.
Reduction ReadReduction(NodeLowering& n) {
  Reduction reduction;
  reduction.keep_dims = n.Int("keepdims", 1) != 0;
  const bool means_none = n.Int("noop_with_empty_axes", 0) != 0;
  const int since = n.op() == "ReduceSum" ? 13 : 18;
  if (n.opset() < since) {
    const std::vector<int64_t> axes = n.Ints("axes");
    reduction.axes = axes.empty() ? AllAxes(n, n.input(0)) : n.Int32s(axes);
    return reduction;
  }
  const bool is_empty = !n.has_input(1) || n.shape(n.input(1)).elements() == 0;
  if (!is_empty) {
    reduction.axes = n.input(1);
  } else {
    reduction.axes = means_none ? n.Int32s({}) : AllAxes(n, n.input(0));
  }
  return reduction;
}

#define OPTFARM_OP(op) constexpr char k##op[] = #op
OPTFARM_OP(Cumprod);
OPTFARM_OP(Cumsum);
OPTFARM_OP(Mean);
OPTFARM_OP(Prod);
OPTFARM_OP(Sum);
#undef OPTFARM_OP

template <const char* kOp>
absl::Status LowerReduce(NodeLowering& n) {
  n.SetOutput(0, ReadReduction(n).Of(n, kOp, n.input(0)));
  return absl::OkStatus();
}

// The largest of truths is whether any is true.
template <bool kIsMax>
absl::Status LowerExtreme(NodeLowering& n) {
  const bool is_bool = n.dtype(n.input(0)) == tensorflow::DT_BOOL;
  const char* op =
      kIsMax ? (is_bool ? "Any" : "Max") : (is_bool ? "All" : "Min");
  n.SetOutput(0, ReadReduction(n).Of(n, op, n.input(0)));
  return absl::OkStatus();
}

absl::Status LowerReduceL1(NodeLowering& n) {
  n.SetOutput(0, ReadReduction(n).Of(n, "Sum", n.Add("Abs", {n.input(0)})));
  return absl::OkStatus();
}

absl::Status LowerReduceSumSquare(NodeLowering& n) {
  n.SetOutput(0, ReadReduction(n).Of(n, "Sum", n.Add("Square", {n.input(0)})));
  return absl::OkStatus();
}

// Roots and logarithms of whole numbers are taken in double.
Endpoint AsFloating(NodeLowering& n, Endpoint x) {
  return IsFloatingType(n.dtype(x)) ? x : n.Cast(x, tensorflow::DT_DOUBLE);
}

absl::Status LowerReduceL2(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint squares = n.Add("Square", {AsFloating(n, x)});
  const Endpoint y = n.Add("Sqrt", {ReadReduction(n).Of(n, "Sum", squares)});
  n.SetOutput(0, n.Cast(y, n.dtype(x)));
  return absl::OkStatus();
}

absl::Status LowerReduceLogSum(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const Endpoint y =
      n.Add("Log", {ReadReduction(n).Of(n, "Sum", AsFloating(n, x))});
  n.SetOutput(0, n.Cast(y, n.dtype(x)));
  return absl::OkStatus();
}

// The largest element is taken out of the sum, so that nothing overflows.
absl::Status LowerReduceLogSumExp(NodeLowering& n) {
  const Endpoint original = n.input(0);
  const Endpoint x = AsFloating(n, original);
  const Reduction reduction = ReadReduction(n);
  const Endpoint max = reduction.Of(n, "Max", x, true);
  const Endpoint finite =
      n.Add("SelectV2", {n.Add("IsFinite", {max}), max, n.ScalarLike(x, 0)});
  const Endpoint exps = n.Add("Exp", {n.Add("Sub", {x, finite})});
  Endpoint y = n.Add(
      "Add", {n.Add("Log", {reduction.Of(n, "Sum", exps, true)}), finite});
  // The dimensions have size 1: their sum only drops them.
  if (!reduction.keep_dims) y = reduction.Of(n, "Sum", y, false);
  n.SetOutput(0, n.Cast(y, n.dtype(original)));
  return absl::OkStatus();
}

Endpoint SizeAlong(NodeLowering& n, Endpoint x, int64_t axis) {
  return n.Add("GatherV2", {n.ShapeOf(x), n.Int32(axis), n.Int32(0)},
               axis < 0 ? std::vector<OpAttr>{{"wraps_negative", true}}
                        : std::vector<OpAttr>{});
}

template <bool kIsMax>
absl::Status LowerArgExtreme(NodeLowering& n) {
  Endpoint x = n.input(0);
  const int64_t axis = n.Int("axis", 0);
  const bool takes_last = n.Int("select_last_index", 0) != 0;
  if (takes_last) x = n.Add("ReverseV2", {x, n.Int32s({axis})});
  Endpoint y = n.Add(kIsMax ? "ArgMax" : "ArgMin", {x, n.Int32(axis)},
                     {{"output_type", tensorflow::DT_INT64}});
  if (takes_last) {
    const Endpoint last =
        n.Add("Sub", {SizeAlong(n, x, axis), n.ScalarLike(y, 1)});
    y = n.Add("Sub", {last, y});
  }
  if (n.Int("keepdims", 1) != 0) y = n.Add("ExpandDims", {y, n.Int32(axis)});
  n.SetOutput(0, y);
  return absl::OkStatus();
}

template <const char* kOp>
absl::Status LowerCumulative(NodeLowering& n) {
  n.SetOutput(0, n.Add(kOp, {n.input(0), AsScalar(n, n.input(1))},
                       {{"exclusive", n.Int("exclusive", 0) != 0},
                        {"reverse", n.Int("reverse", 0) != 0}}));
  return absl::OkStatus();
}

// Order turned around without overflow.
Endpoint Mirrored(NodeLowering& n, Endpoint x) {
  return n.Add(IsFloatingType(n.dtype(x)) ? "Neg" : "Invert", {x});
}

absl::Status LowerTopK(NodeLowering& n) {
  Endpoint x = n.input(0);
  const Endpoint k =
      n.opset() < 10 ? n.Int32(n.Int("k", 1))
                     : n.Cast(AsScalar(n, n.input(1)), tensorflow::DT_INT32);
  const bool is_largest = n.Int("largest", 1) != 0;
  int64_t axis = n.Int("axis", -1);
  std::vector<int64_t> order;
  const PartialShape shape = n.shape(x);
  if (axis != -1 || shape.has_rank()) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(x));
    OPTFARM_ASSIGN_OR_RETURN(axis, NodeLowering::Axis(axis, rank));
    order.resize(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[static_cast<size_t>(axis)], order.back());
    x = n.Transpose(x, order);
  }
  if (!is_largest) x = Mirrored(n, x);
  const std::vector<Endpoint> top =
      n.AddAll("TopKV2", {x, k}, {{"sorted", n.Int("sorted", 1) != 0}});
  if (top.size() != 2) return absl::OkStatus();
  const Endpoint values = is_largest ? top[0] : Mirrored(n, top[0]);
  const Endpoint indices = n.Cast(top[1], tensorflow::DT_INT64);
  n.SetOutput(0, order.empty() ? values : n.Transpose(values, order));
  n.SetOutput(1, order.empty() ? indices : n.Transpose(indices, order));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"ArgMax", LowerArgExtreme<true>},
    {"ArgMin", LowerArgExtreme<false>},
    {"CumProd", LowerCumulative<kCumprod>},
    {"CumSum", LowerCumulative<kCumsum>},
    {"ReduceL1", LowerReduceL1},
    {"ReduceL2", LowerReduceL2},
    {"ReduceLogSum", LowerReduceLogSum},
    {"ReduceLogSumExp", LowerReduceLogSumExp},
    {"ReduceMax", LowerExtreme<true>},
    {"ReduceMean", LowerReduce<kMean>},
    {"ReduceMin", LowerExtreme<false>},
    {"ReduceProd", LowerReduce<kProd>},
    {"ReduceSum", LowerReduce<kSum>},
    {"ReduceSumSquare", LowerReduceSumSquare},
    {"TopK", LowerTopK},
};

}  // namespace

absl::Span<const LoweringRow> ReductionLowerings() { return kRows; }

}  // namespace optfarm::formats
