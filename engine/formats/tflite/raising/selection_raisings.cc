// Ops that pick elements: slices, gathers, choices, sorted ends; and ops that
// make tensors from sizes.

#include <tflite/schema_generated.h>

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

Layer BeginMove(NodeRaiser& node, int data = 0) {
  LayerRequest request;
  request.rule = ScaleRule::kDataMovement;
  request.inputs = {node.input(data)};
  return node.Begin(request);
}

absl::Status RaiseSlice(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  node.Finish(layer, BuiltinOperator::SLICE,
              {layer.inputs[0], node.Int32Input(1), node.Int32Input(2)});
  return absl::OkStatus();
}

struct SliceMasks {
  int64_t begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink = 0;
};

absl::StatusOr<SliceMasks> ReadMasks(const NodeRaiser& node) {
  SliceMasks masks;
  const auto read = [&](absl::string_view name, int64_t* mask) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(*mask, graph::GetIntOr(node.def(), name, 0));
    return absl::OkStatus();
  };
  OPTFARM_RETURN_IF_ERROR(read("begin_mask", &masks.begin));
  OPTFARM_RETURN_IF_ERROR(read("end_mask", &masks.end));
  OPTFARM_RETURN_IF_ERROR(read("ellipsis_mask", &masks.ellipsis));
  OPTFARM_RETURN_IF_ERROR(read("new_axis_mask", &masks.new_axis));
  OPTFARM_RETURN_IF_ERROR(read("shrink_axis_mask", &masks.shrink));
  return masks;
}

// An index with one entry for each dimension of the input.
struct PlainSlice {
  std::vector<int64_t> begin, end, stride;
  int begin_mask = 0, end_mask = 0, shrink_mask = 0;

  void Add(int64_t from, int64_t to, int64_t step, bool no_begin, bool no_end,
           bool shrinks) {
    const int bit = 1 << begin.size();
    begin.push_back(from);
    end.push_back(to);
    stride.push_back(step);
    if (no_begin) begin_mask |= bit;
    if (no_end) end_mask |= bit;
    if (shrinks) shrink_mask |= bit;
  }
};

int64_t Clamped(int64_t index) {
  return std::min<int64_t>(std::max<int64_t>(index, -0x7fffffff), 0x7fffffff);
}

// Without new axes and ellipses, which older runtimes do not know.
absl::StatusOr<PlainSlice> ReadPlainSlice(const NodeRaiser& node,
                                          const SliceMasks& masks) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> begin, node.Numbers(1));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> end, node.Numbers(2));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> stride, node.Numbers(3));
  const PartialShape& shape = node.ShapeOfInput(0);
  if (!shape.has_rank() || begin.size() != end.size() ||
      begin.size() != stride.size() || begin.size() > 31) {
    return absl::FailedPreconditionError("its index does not fit its input");
  }
  int written = 0;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t bit = int64_t{1} << i;
    if ((masks.new_axis & bit) == 0 && (masks.ellipsis & bit) == 0) ++written;
  }
  PlainSlice plain;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t bit = int64_t{1} << i;
    if ((masks.ellipsis & bit) != 0) {
      for (int rest = shape.rank() - written; rest > 0; --rest) {
        plain.Add(0, 0, 1, true, true, false);
      }
    } else if ((masks.new_axis & bit) == 0) {
      plain.Add(Clamped(begin[i]), Clamped(end[i]), Clamped(stride[i]),
                (masks.begin & bit) != 0, (masks.end & bit) != 0,
                (masks.shrink & bit) != 0);
    }
  }
  if (static_cast<int>(plain.begin.size()) > shape.rank()) {
    return absl::InvalidArgumentError("its index has too many entries");
  }
  return plain;
}

absl::Status RaiseStridedSlice(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const SliceMasks masks, ReadMasks(node));
  const auto plain = ReadPlainSlice(node, masks);
  OperatorOptions options;
  if (!plain.ok()) {
    if (masks.ellipsis != 0 || masks.new_axis != 0) return plain.status();
    options.begin_mask = static_cast<int>(masks.begin);
    options.end_mask = static_cast<int>(masks.end);
    options.shrink_axis_mask = static_cast<int>(masks.shrink);
    const Layer layer = BeginMove(node);
    node.Finish(layer, BuiltinOperator::STRIDED_SLICE,
                {layer.inputs[0], node.Int32Input(1), node.Int32Input(2),
                 node.Int32Input(3)},
                options);
    return absl::OkStatus();
  }
  const PartialShape& shape = node.ShapeOfOutput();
  const bool reshapes = masks.new_axis != 0;
  if (reshapes && !shape.is_static()) {
    return absl::FailedPreconditionError(
        "it adds dimensions to a shape that is not known");
  }
  const Layer layer = BeginMove(node);
  options.begin_mask = plain->begin_mask;
  options.end_mask = plain->end_mask;
  options.shrink_axis_mask = plain->shrink_mask;
  std::vector<TensorId> inputs = {layer.inputs[0], node.Int32s(plain->begin),
                                  node.Int32s(plain->end),
                                  node.Int32s(plain->stride)};
  if (!reshapes) {
    node.Finish(layer, BuiltinOperator::STRIDED_SLICE, std::move(inputs),
                options);
    return absl::OkStatus();
  }
  // The result without the new axes, which are of size 1.
  const TensorId cut =
      node.EmitBetween(BuiltinOperator::STRIDED_SLICE, std::move(inputs),
                       layer.inputs[0], PartialShape::Unknown(), options);
  OperatorOptions reshape;
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (int64_t dim : dims) reshape.dims.push_back(static_cast<int32_t>(dim));
  node.Finish(layer, BuiltinOperator::RESHAPE, {cut, node.Int32s(dims)},
              reshape);
  return absl::OkStatus();
}

absl::Status RaiseGather(NodeRaiser& node) {
  int64_t axis = 0;
  if (node.input_count() > 2) {
    OPTFARM_ASSIGN_OR_RETURN(axis, node.Number(2));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(node.def(), "batch_dims", 0));
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.axis, node.AxisOf(axis, 0));
  options.batch_dims = static_cast<int>(batch_dims);
  const Layer layer = BeginMove(node);
  node.Finish(layer, BuiltinOperator::GATHER,
              {layer.inputs[0], node.Int32Input(1)}, options);
  return absl::OkStatus();
}

absl::Status RaiseGatherNd(NodeRaiser& node) {
  node.Emit(BuiltinOperator::GATHER_ND, {node.Tensor(0), node.Int32Input(1)});
  return absl::OkStatus();
}

// A choice by element. Select takes a vector for rows too, which no operator
// does.
absl::Status RaiseSelect(NodeRaiser& node) {
  const PartialShape& choice = node.ShapeOfInput(0);
  const PartialShape& values = node.ShapeOfInput(1);
  if (node.node().op() == "Select" && choice.has_rank() && values.has_rank() &&
      choice.rank() == 1 && values.rank() > 1) {
    return absl::UnimplementedError("it chooses rows by a vector");
  }
  const bool is_same =
      choice.is_static() && choice == values && values == node.ShapeOfInput(2);
  node.Emit(is_same ? BuiltinOperator::SELECT : BuiltinOperator::SELECT_V2,
            {node.Tensor(0), node.Tensor(1), node.Tensor(2)});
  return absl::OkStatus();
}

absl::Status RaiseTopK(NodeRaiser& node) {
  const std::vector<TensorId> inputs = {node.Tensor(0), node.Int32Input(1)};
  std::vector<TensorId> outputs;
  for (int port = 0; port < 2; ++port) {
    outputs.push_back(node.tensors().NewTensor(node.output(port)));
    node.SetOutput(outputs.back(), port);
  }
  // Positions are int32 in every runtime.
  DraftTensor& positions = node.draft().tensors[outputs[1]];
  if (positions.type != tflite::TensorType::INT32) {
    DraftTensor narrow = positions;
    narrow.type = tflite::TensorType::INT32;
    narrow.name += "/int32";
    const TensorId id = node.draft().AddTensor(std::move(narrow));
    node.draft().AddOperator(BuiltinOperator::TOPK_V2, inputs,
                             {outputs[0], id});
    node.draft().AddOperator(BuiltinOperator::CAST, {id}, {outputs[1]});
    return absl::OkStatus();
  }
  node.draft().AddOperator(BuiltinOperator::TOPK_V2, inputs, outputs);
  return absl::OkStatus();
}

absl::Status RaiseOneHot(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node.def(), "axis", -1));
  OperatorOptions options;
  options.axis = static_cast<int>(axis);
  node.Emit(
      BuiltinOperator::ONE_HOT,
      {node.Int32Input(0), node.Int32Input(1), node.Tensor(2), node.Tensor(3)},
      options);
  return absl::OkStatus();
}

absl::Status RaiseFill(NodeRaiser& node) {
  node.Emit(BuiltinOperator::FILL, {node.Int32Input(0), node.Tensor(1)});
  return absl::OkStatus();
}

// The sizes of input `i`: constant where they are known.
TensorId SizesOf(NodeRaiser& node, int i) {
  const PartialShape& shape = node.ShapeOfInput(i);
  if (shape.is_static()) {
    return node.Int32s({shape.dims().begin(), shape.dims().end()});
  }
  DraftTensor sizes;
  sizes.name = absl::StrCat(node.node().name(), "/shape");
  sizes.type = tflite::TensorType::INT32;
  sizes.shape = shape.has_rank() ? PartialShape::Vector(shape.rank())
                                 : PartialShape::OfRank(1);
  const TensorId id = node.draft().AddTensor(std::move(sizes));
  node.draft().AddOperator(BuiltinOperator::SHAPE, {node.Tensor(i)}, {id});
  return id;
}

// 0 or 1 everywhere: x - x keeps NaN, so a fill with the shape is used.
absl::Status RaiseLike(NodeRaiser& node) {
  const tensorflow::DataType dtype = node.view().TypeOf(node.output());
  if (dtype != tensorflow::DT_FLOAT) {
    return absl::UnimplementedError("only its float form is written");
  }
  const float value = node.node().op() == "OnesLike" ? 1.0f : 0.0f;
  node.Emit(BuiltinOperator::FILL, {SizesOf(node, 0), node.Float(value)});
  return absl::OkStatus();
}

absl::Status RaiseRange(NodeRaiser& node) {
  node.Emit(BuiltinOperator::RANGE,
            {node.Tensor(0), node.Tensor(1), node.Tensor(2)});
  return absl::OkStatus();
}

absl::Status RaiseScatterNd(NodeRaiser& node) {
  node.Emit(BuiltinOperator::SCATTER_ND,
            {node.Int32Input(0), node.Tensor(1), node.Int32Input(2)});
  return absl::OkStatus();
}

// A tensor of ones like the updates, which says where they go.
TensorId Marks(NodeRaiser& node) {
  const PartialShape& updates = node.ShapeOfInput(2);
  const TensorId one = node.Float(1);
  return node.EmitBetween(BuiltinOperator::FILL, {SizesOf(node, 2), one}, one,
                          updates);
}

// The updates scattered over zeros, and chosen where ones scattered alike are:
// SCATTER_ND adds, and writes into nothing. Slots that are written twice have
// no defined value in TensorFlow either.
absl::Status RaiseScatterUpdate(NodeRaiser& node) {
  const tensorflow::DataType dtype = node.view().TypeOf(node.input(0));
  if (dtype != tensorflow::DT_FLOAT && dtype != tensorflow::DT_INT32 &&
      dtype != tensorflow::DT_INT64) {
    return absl::UnimplementedError(
        absl::StrCat("it updates ", graph::DataTypeName(dtype),
                     "; float, int32 and int64 are written"));
  }
  const PartialShape& shape = node.ShapeOfInput(0);
  const TensorId x = node.Tensor(0), indices = node.Int32Input(1);
  const TensorId sizes = SizesOf(node, 0);
  const TensorId scattered = node.EmitBetween(
      BuiltinOperator::SCATTER_ND, {indices, node.Tensor(2), sizes}, x, shape);
  const TensorId ones = Marks(node);
  const TensorId counts = node.EmitBetween(BuiltinOperator::SCATTER_ND,
                                           {indices, ones, sizes}, ones, shape);
  // Comparisons know four dimensions only, casts any number.
  const TensorId is_written =
      node.EmitBetween(BuiltinOperator::CAST, {counts}, counts, shape);
  node.draft().tensors[is_written].type = tflite::TensorType::BOOL;
  node.Emit(BuiltinOperator::SELECT, {is_written, scattered, x});
  return absl::OkStatus();
}

// The product of the sizes.
absl::Status RaiseSize(NodeRaiser& node) {
  const TensorId sizes = SizesOf(node, 0);
  const bool is_wide =
      node.view().TypeOf(node.output()) == tensorflow::DT_INT64;
  if (!is_wide) {
    node.Emit(BuiltinOperator::REDUCE_PROD, {sizes, node.Int32s({0})});
    return absl::OkStatus();
  }
  const TensorId count =
      node.EmitBetween(BuiltinOperator::REDUCE_PROD, {sizes, node.Int32s({0})},
                       sizes, PartialShape::Scalar());
  node.Emit(BuiltinOperator::CAST, {count});
  return absl::OkStatus();
}

absl::Status RefuseBranches(NodeRaiser& node) {
  return absl::UnimplementedError(
      "branches become a choice between their results, which must have the "
      "same known shapes on both sides and no effects; --inputs with all sizes "
      "may help");
}

constexpr RaisingRow kRows[] = {
    {"Slice", RaiseSlice},
    {"StridedSlice", RaiseStridedSlice},
    {"Gather", RaiseGather},
    {"GatherV2", RaiseGather},
    {"GatherNd", RaiseGatherNd},
    {"Select", RaiseSelect},
    {"SelectV2", RaiseSelect},
    {"TopKV2", RaiseTopK},
    {"OneHot", RaiseOneHot},
    {"Fill", RaiseFill},
    {"ZerosLike", RaiseLike},
    {"OnesLike", RaiseLike},
    {"Range", RaiseRange},
    {"ScatterNd", RaiseScatterNd},
    {"TensorScatterUpdate", RaiseScatterUpdate},
    {"Size", RaiseSize},
    {"If", RefuseBranches},
    {"StatelessIf", RefuseBranches},
};

}  // namespace

absl::Span<const RaisingRow> SelectionRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
