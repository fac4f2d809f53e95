// Operators that pick or write elements by index.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// Whether all indices are known and count from the front.
bool AreFromFront(NodeLowering& n, Endpoint indices) {
  const auto known = n.KnownInts(indices);
  return known.has_value() &&
         std::all_of(known->begin(), known->end(),
                     [](int64_t index) { return index >= 0; });
}

absl::Status LowerGather(NodeLowering& n) {
  const Endpoint x = n.input(0);
  Endpoint indices = n.input(1);
  const int64_t axis = n.Int("axis", 0);
  const PartialShape shape = n.shape(x);
  const auto known = n.KnownInts(indices);
  std::vector<OpAttr> attrs;
  if (!AreFromFront(n, indices)) {
    int64_t size = graph::kUnknownDim;
    if (shape.has_rank()) {
      OPTFARM_ASSIGN_OR_RETURN(const int at,
                               NodeLowering::Axis(axis, shape.rank()));
      size = shape.dim(at);
    }
    if (known.has_value() && size >= 0) {
      std::vector<int64_t> wrapped;
      for (const int64_t i : *known) wrapped.push_back(i < 0 ? i + size : i);
      const PartialShape dims = n.shape(indices);
      const DataType type = n.dtype(indices);
      indices = n.Cast(n.Int64s(wrapped), type);
      if (dims.is_static()) {
        indices = n.Reshape(indices, {dims.dims().begin(), dims.dims().end()});
      }
    } else {
      attrs.emplace_back("wraps_negative", true);
    }
  }
  n.SetOutput(0, n.Add("GatherV2", {x, indices, n.Int32(axis)}, attrs));
  return absl::OkStatus();
}

absl::Status LowerGatherElements(NodeLowering& n) {
  n.SetOutput(0, n.Add("GatherElements", {n.input(0), n.input(1)},
                       {{"axis", n.Int("axis", 0)}}));
  return absl::OkStatus();
}

absl::Status LowerGatherNd(NodeLowering& n) {
  const int64_t batch_dims = n.Int("batch_dims", 0);
  const Endpoint indices = n.input(1);
  if (batch_dims != 0) {
    n.SetOutput(0, n.Add("GatherNdBatched", {n.input(0), indices},
                         {{"batch_dims", batch_dims}}));
    return absl::OkStatus();
  }
  std::vector<OpAttr> attrs;
  if (!AreFromFront(n, indices)) attrs.emplace_back("wraps_negative", true);
  n.SetOutput(0, n.Add("GatherNd", {n.input(0), indices}, attrs));
  return absl::OkStatus();
}

absl::Status LowerScatterElements(NodeLowering& n) {
  n.SetOutput(0, n.Add("ScatterElements", {n.input(0), n.input(1), n.input(2)},
                       {{"axis", n.Int("axis", 0)},
                        {"reduction", n.String("reduction", "none")}}));
  return absl::OkStatus();
}

absl::Status LowerScatterNd(NodeLowering& n) {
  const std::string reduction = n.String("reduction", "none");
  const Endpoint indices = n.input(1);
  const char* op = reduction == "none"  ? "TensorScatterUpdate"
                   : reduction == "add" ? "TensorScatterAdd"
                   : reduction == "mul" ? "TensorScatterMul"
                   : reduction == "min" ? "TensorScatterMin"
                   : reduction == "max" ? "TensorScatterMax"
                                        : nullptr;
  if (op == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("reduction '", reduction, "' is not known"));
  }
  std::vector<OpAttr> attrs;
  if (!AreFromFront(n, indices)) attrs.emplace_back("wraps_negative", true);
  n.SetOutput(0, n.Add(op, {n.input(0), indices, n.input(2)}, attrs));
  return absl::OkStatus();
}

Endpoint ElementAt(NodeLowering& n, Endpoint vector, int64_t at) {
  return n.Add("GatherV2", {vector, n.Int32(at), n.Int32(0)});
}

// Indices from the end count, and those beyond both ends light nothing.
absl::Status LowerOneHot(NodeLowering& n) {
  const Endpoint indices = n.Cast(n.input(0), tensorflow::DT_INT64);
  const Endpoint depth = AsScalar(n, n.Cast(n.input(1), tensorflow::DT_INT64));
  const Endpoint values = n.input(2);
  const Endpoint is_negative =
      n.Add("Less", {indices, n.ScalarLike(indices, 0)});
  const Endpoint wrapped =
      n.Add("SelectV2", {is_negative, n.Add("Add", {indices, depth}), indices});
  n.SetOutput(0, n.Add("OneHot",
                       {wrapped, n.Cast(depth, tensorflow::DT_INT32),
                        ElementAt(n, values, 1), ElementAt(n, values, 0)},
                       {{"axis", n.Int("axis", -1)}}));
  return absl::OkStatus();
}

absl::Status LowerNonZero(NodeLowering& n) {
  n.SetOutput(
      0, n.Add("Transpose", {n.Add("Where", {n.input(0)}), n.Int32s({1, 0})}));
  return absl::OkStatus();
}

absl::Status LowerCompress(NodeLowering& n) {
  Endpoint x = n.input(0);
  if (!n.has_attr("axis")) x = n.Reshape(x, {-1});
  n.SetOutput(0,
              n.Add("Compress", {x, n.input(1)}, {{"axis", n.Int("axis", 0)}}));
  return absl::OkStatus();
}

absl::Status LowerUnique(NodeLowering& n) {
  const std::vector<Endpoint> outputs =
      n.AddAll("UniqueElements", {n.input(0)},
               {{"sorted", n.Int("sorted", 1) != 0},
                {"flattens", !n.has_attr("axis")},
                {"axis", n.Int("axis", 0)}});
  for (size_t i = 0; i < outputs.size(); ++i) {
    n.SetOutput(static_cast<int>(i), outputs[i]);
  }
  return absl::OkStatus();
}

absl::Status LowerReverseSequence(NodeLowering& n) {
  n.SetOutput(0, n.Add("ReverseSequence", {n.input(0), n.input(1)},
                       {{"seq_dim", n.Int("time_axis", 0)},
                        {"batch_dim", n.Int("batch_axis", 1)}}));
  return absl::OkStatus();
}

absl::Status LowerTrilu(NodeLowering& n) {
  const Endpoint k = n.has_input(1)
                         ? AsScalar(n, n.Cast(n.input(1), tensorflow::DT_INT64))
                         : n.builder().Scalar(tensorflow::DT_INT64, 0);
  n.SetOutput(
      0, n.Add("Trilu", {n.input(0), k}, {{"upper", n.Int("upper", 1) != 0}}));
  return absl::OkStatus();
}

// A comparison of row and column numbers.
absl::Status LowerEyeLike(NodeLowering& n) {
  const Endpoint x = n.input(0);
  DataType type = n.dtype(x);
  if (n.has_attr("dtype")) {
    OPTFARM_ASSIGN_OR_RETURN(type, ElementTypeAttr(n, "dtype", 1));
  }
  const Endpoint shape = n.ShapeOf(x);
  const auto counted = [&](int64_t dimension) {
    const Endpoint size = ElementAt(n, shape, dimension);
    return n.Add("Range", {n.ScalarLike(size, 0), size, n.ScalarLike(size, 1)});
  };
  const Endpoint rows = n.Add("ExpandDims", {counted(0), n.Int32(1)});
  const Endpoint diagonal = n.Add(
      "Add", {rows, n.ScalarLike(rows, static_cast<double>(n.Int("k", 0)))});
  n.SetOutput(0, n.Cast(n.Add("Equal", {diagonal, counted(1)}), type));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Compress", LowerCompress},
    {"EyeLike", LowerEyeLike},
    {"Gather", LowerGather},
    {"GatherElements", LowerGatherElements},
    {"GatherND", LowerGatherNd},
    {"NonZero", LowerNonZero},
    {"OneHot", LowerOneHot},
    {"ReverseSequence", LowerReverseSequence},
    {"Scatter", LowerScatterElements},
    {"ScatterElements", LowerScatterElements},
    {"ScatterND", LowerScatterNd},
    {"Trilu", LowerTrilu},
    {"Trilu", LowerTrilu, 1, kNoLaterVersion, "com.microsoft"},
    {"Unique", LowerUnique},
};

}  // namespace

absl::Span<const LoweringRow> IndexingLowerings() { return kRows; }

}  // namespace optfarm::formats
