// Ops that give tensors another shape, join, cut, pad and repeat them.

#include <tflite/schema_generated.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

// The layer of an op that moves the elements of input `data`.
Layer BeginMove(NodeRaiser& node, int data = 0) {
  LayerRequest request;
  request.rule = ScaleRule::kDataMovement;
  request.inputs = {node.input(data)};
  return node.Begin(request);
}

// Ops whose result has known dimensions but at most one: a shape of numbers.
bool ReshapesToKnown(const PartialShape& shape) {
  if (!shape.has_rank()) return false;
  const auto dims = shape.dims();
  return std::count_if(dims.begin(), dims.end(),
                       [](int64_t dim) { return dim < 0; }) <= 1;
}

void FinishReshape(NodeRaiser& node, const Layer& layer,
                   const PartialShape& shape) {
  OperatorOptions options;
  const std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (int64_t dim : dims) options.dims.push_back(static_cast<int32_t>(dim));
  node.Finish(layer, BuiltinOperator::RESHAPE,
              {layer.inputs[0], node.Int32s(dims)}, std::move(options));
}

absl::Status RaiseReshape(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  if (ReshapesToKnown(node.ShapeOfOutput())) {
    FinishReshape(node, layer, node.ShapeOfOutput());
    return absl::OkStatus();
  }
  node.Finish(layer, BuiltinOperator::RESHAPE,
              {layer.inputs[0], node.Int32Input(1)});
  return absl::OkStatus();
}

absl::Status RaiseSqueeze(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  if (ReshapesToKnown(node.ShapeOfOutput())) {
    FinishReshape(node, layer, node.ShapeOfOutput());
    return absl::OkStatus();
  }
  OperatorOptions options;
  std::vector<int64_t> axes;
  if (node.input_count() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(axes, node.Numbers(1));
  } else {
    OPTFARM_ASSIGN_OR_RETURN(axes,
                             graph::GetIntsOr(node.def(), "squeeze_dims", {}));
  }
  for (int64_t axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(const int along, node.AxisOf(axis, 0));
    options.dims.push_back(along);
  }
  node.Finish(layer, BuiltinOperator::SQUEEZE, {layer.inputs[0]},
              std::move(options));
  return absl::OkStatus();
}

absl::Status RaiseExpandDims(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  if (ReshapesToKnown(node.ShapeOfOutput())) {
    FinishReshape(node, layer, node.ShapeOfOutput());
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(1));
  node.Finish(layer, BuiltinOperator::EXPAND_DIMS,
              {layer.inputs[0], node.Int32(axis)});
  return absl::OkStatus();
}

// Runtimes turn at most this many dimensions.
constexpr int kMostTurned = 5;

// The same move of elements with fewer dimensions: those of 1 left out, those
// that stay together as one.
struct ShortOrder {
  // Of the input and of the result.
  std::vector<int64_t> from, to;
  std::vector<int64_t> order;
};

// REQUIRES: the shape is static, and `order` a permutation of its dimensions.
ShortOrder Shortened(const PartialShape& shape,
                     const std::vector<int64_t>& order) {
  // Of each input dimension that is kept: its group, in the result's order.
  std::vector<std::vector<int64_t>> groups;
  for (int64_t axis : order) {
    if (shape.dim(static_cast<int>(axis)) == 1) continue;
    int64_t before = axis - 1;
    while (before >= 0 && shape.dim(static_cast<int>(before)) == 1) --before;
    if (groups.empty() || groups.back().back() != before) {
      groups.emplace_back();
    }
    groups.back().push_back(axis);
  }
  std::vector<size_t> by_input(groups.size());
  std::iota(by_input.begin(), by_input.end(), size_t{0});
  std::sort(by_input.begin(), by_input.end(), [&](size_t a, size_t b) {
    return groups[a].front() < groups[b].front();
  });
  const auto size_of = [&](size_t group) {
    int64_t size = 1;
    for (int64_t axis : groups[group])
      size *= shape.dim(static_cast<int>(axis));
    return size;
  };
  ShortOrder result;
  result.order.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    result.from.push_back(size_of(by_input[i]));
    result.to.push_back(size_of(i));
    result.order[by_input[i]] = static_cast<int64_t>(i);
  }
  return result;
}

bool IsPermutation(std::vector<int64_t> order, int rank) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return static_cast<int>(order.size()) == rank;
}

absl::Status RaiseTranspose(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> order, node.Numbers(1));
  const Layer layer = BeginMove(node);
  const PartialShape& shape = node.ShapeOfInput(0);
  // Moving dimensions of 1 moves no element.
  std::vector<int64_t> moved;
  for (int64_t axis : order) {
    if (!shape.has_rank() || axis < 0 || axis >= shape.rank() ||
        shape.dim(static_cast<int>(axis)) != 1) {
      moved.push_back(axis);
    }
  }
  if (std::is_sorted(moved.begin(), moved.end()) &&
      node.ShapeOfOutput().is_static()) {
    FinishReshape(node, layer, node.ShapeOfOutput());
    return absl::OkStatus();
  }
  const PartialShape& turned = node.ShapeOfOutput();
  if (shape.is_static() && shape.rank() > kMostTurned && turned.is_static() &&
      IsPermutation(order, shape.rank())) {
    const ShortOrder shorter = Shortened(shape, order);
    const TensorId input = node.EmitBetween(
        BuiltinOperator::RESHAPE, {layer.inputs[0], node.Int32s(shorter.from)},
        layer.inputs[0], PartialShape(shorter.from));
    const TensorId made = node.EmitBetween(BuiltinOperator::TRANSPOSE,
                                           {input, node.Int32s(shorter.order)},
                                           input, PartialShape(shorter.to));
    Layer rest = layer;
    rest.inputs = {made};
    FinishReshape(node, rest, turned);
    return absl::OkStatus();
  }
  node.Finish(layer, BuiltinOperator::TRANSPOSE,
              {layer.inputs[0], node.Int32s(order)});
  return absl::OkStatus();
}

// A join of inputs first .. last - 1.
absl::Status FinishConcat(NodeRaiser& node, int first, int last, int64_t axis) {
  LayerRequest request;
  request.rule = ScaleRule::kDataMovement;
  for (int i = first; i < last; ++i) {
    // Empty parts add nothing, and runtimes stumble over them.
    if (last - first > 1 && node.ShapeOfInput(i).elements() == 0) continue;
    request.inputs.push_back(node.input(i));
  }
  if (request.inputs.empty()) request.inputs.push_back(node.input(first));
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.axis, node.AxisOf(axis, first));
  const Layer layer = node.Begin(request);
  node.Finish(layer, BuiltinOperator::CONCATENATION, layer.inputs, options);
  return absl::OkStatus();
}

absl::Status RaiseConcatV2(NodeRaiser& node) {
  const int last = node.input_count() - 1;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(last));
  return FinishConcat(node, 0, last, axis);
}

absl::Status RaiseConcat(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(0));
  return FinishConcat(node, 1, node.input_count(), axis);
}

absl::Status RaisePack(NodeRaiser& node) {
  LayerRequest request;
  request.rule = ScaleRule::kDataMovement;
  for (int i = 0; i < node.input_count(); ++i) {
    request.inputs.push_back(node.input(i));
  }
  const Layer layer = node.Begin(request);
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node.def(), "axis", 0));
  OperatorOptions options;
  options.axis = static_cast<int>(axis);
  options.count = node.input_count();
  node.Finish(layer, BuiltinOperator::PACK, layer.inputs, options);
  return absl::OkStatus();
}

// Emits an operator with all of the node's outputs, which have the scales of
// input `data`.
absl::Status FinishParts(NodeRaiser& node, BuiltinOperator op, int data,
                         int parts, std::vector<TensorId> behind,
                         bool data_is_second, OperatorOptions options) {
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(data));
  const TensorId input =
      twin.has_value() ? *twin : node.tensors().Tensor(node.input(data));
  std::vector<TensorId> inputs = std::move(behind);
  inputs.insert(data_is_second ? inputs.begin() + 1 : inputs.begin(), input);
  std::vector<TensorId> outputs;
  for (int port = 0; port < parts; ++port) {
    if (twin.has_value()) {
      const DraftTensor& from = node.draft().tensor(*twin);
      outputs.push_back(node.tensors().NewTensor(
          node.output(port), from.type, Quantization(from.quantization)));
      node.tensors().SetTwin(node.output(port), outputs.back());
    } else {
      outputs.push_back(node.tensors().NewTensor(node.output(port)));
      node.SetOutput(outputs.back(), port);
    }
  }
  options.count = parts;
  node.draft().AddOperator(op, std::move(inputs), std::move(outputs),
                           std::move(options));
  return absl::OkStatus();
}

// A number of parts that a file claims; each becomes a tensor.
constexpr int64_t kMostParts = 65536;

absl::StatusOr<int> PartsOf(const NodeRaiser& node, absl::string_view attr) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t parts,
                           graph::GetInt(node.def(), attr));
  if (parts < 1 || parts > kMostParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("its ", attr, " is ", parts));
  }
  return static_cast<int>(parts);
}

absl::Status RaiseUnpack(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int parts, PartsOf(node, "num"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis,
                           graph::GetIntOr(node.def(), "axis", 0));
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.axis, node.AxisOf(axis, 0));
  return FinishParts(node, BuiltinOperator::UNPACK, 0, parts, {}, false,
                     options);
}

absl::Status RaiseSplit(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int parts, PartsOf(node, "num_split"));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(0));
  OPTFARM_ASSIGN_OR_RETURN(const int along, node.AxisOf(axis, 1));
  return FinishParts(node, BuiltinOperator::SPLIT, 1, parts,
                     {node.Int32(along)}, true, {});
}

absl::Status RaiseSplitV(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int parts, PartsOf(node, "num_split"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, node.Numbers(1));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t axis, node.Number(2));
  OPTFARM_ASSIGN_OR_RETURN(const int along, node.AxisOf(axis, 0));
  return FinishParts(node, BuiltinOperator::SPLIT_V, 0, parts,
                     {node.Int32s(sizes), node.Int32(along)}, false, {});
}

// Numbers as a matrix of two columns.
TensorId Pairs(NodeRaiser& node, const std::vector<int64_t>& numbers) {
  const TensorId id = node.Int32s(numbers);
  node.draft().tensors[id].shape =
      PartialShape({static_cast<int64_t>(numbers.size()) / 2, 2});
  return id;
}

absl::Status RaisePad(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.Numbers(1));
  if (std::any_of(pads.begin(), pads.end(), [](int64_t n) { return n < 0; })) {
    return absl::UnimplementedError("it pads by a negative number");
  }
  bool pads_zeros = node.node().inputs().size() == 2;
  if (!pads_zeros && node.view().IsConstant(node.input(2))) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant value,
                             node.view().ConstantAt(node.input(2)));
    const auto real = RealValues(value);
    pads_zeros = real.ok() && real->size() == 1 && (*real)[0] == 0;
    // Among quantized values the zero point is zero.
    const Quantization* scales = node.view().QuantizationOf(node.input(0));
    const auto stored = WholeNumbers(value);
    if (scales != nullptr && scales->zero_point.size() == 1 && stored.ok() &&
        stored->size() == 1) {
      pads_zeros = (*stored)[0] == scales->zero_point[0];
    }
  }
  LayerRequest request;
  // Zero is a quantized value; others may not be.
  request.rule = pads_zeros ? ScaleRule::kDataMovement : ScaleRule::kFloatOnly;
  request.inputs = {node.input(0)};
  const Layer layer = node.Begin(request);
  std::vector<TensorId> inputs = {layer.inputs[0], Pairs(node, pads)};
  if (!pads_zeros) inputs.push_back(node.Tensor(2));
  node.Finish(layer, pads_zeros ? BuiltinOperator::PAD : BuiltinOperator::PADV2,
              std::move(inputs));
  return absl::OkStatus();
}

absl::Status RaiseMirrorPad(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.Numbers(1));
  OPTFARM_ASSIGN_OR_RETURN(const std::string mode,
                           graph::GetString(node.def(), "mode"));
  OperatorOptions options;
  options.symmetric = mode == "SYMMETRIC";
  const Layer layer = BeginMove(node);
  node.Finish(layer, BuiltinOperator::MIRROR_PAD,
              {layer.inputs[0], Pairs(node, pads)}, options);
  return absl::OkStatus();
}

absl::Status RaiseTile(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  node.Finish(layer, BuiltinOperator::TILE,
              {layer.inputs[0], node.Int32Input(1)});
  return absl::OkStatus();
}

absl::Status RaiseBlocks(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t block,
                           graph::GetInt(node.def(), "block_size"));
  if (!graph::IsNhwc(node.def())) {
    return absl::UnimplementedError(
        absl::StrCat("its data_format is ", graph::DataFormatText(node.def())));
  }
  OperatorOptions options;
  options.block_size = static_cast<int>(block);
  const Layer layer = BeginMove(node);
  node.Finish(layer, node.builtin(), {layer.inputs[0]}, options);
  return absl::OkStatus();
}

absl::Status RaiseBatches(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks, node.Numbers(1));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> edges, node.Numbers(2));
  const Layer layer = BeginMove(node);
  node.Finish(layer, node.builtin(),
              {layer.inputs[0], node.Int32s(blocks), Pairs(node, edges)});
  return absl::OkStatus();
}

absl::Status RaiseReverse(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> axes, node.Numbers(1));
  const Layer layer = BeginMove(node);
  for (int64_t& axis : axes) {
    OPTFARM_ASSIGN_OR_RETURN(axis, node.AxisOf(axis, 0));
  }
  node.Finish(layer, BuiltinOperator::REVERSE_V2,
              {layer.inputs[0], node.Int32s(axes)});
  return absl::OkStatus();
}

absl::Status RaiseBroadcastTo(NodeRaiser& node) {
  const Layer layer = BeginMove(node);
  node.Finish(layer, BuiltinOperator::BROADCAST_TO,
              {layer.inputs[0], node.Int32Input(1)});
  return absl::OkStatus();
}

absl::Status RaiseShape(NodeRaiser& node) {
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(0));
  node.Emit(BuiltinOperator::SHAPE,
            {twin.has_value() ? *twin : node.Tensor(0)});
  return absl::OkStatus();
}

// Each output is an input.
absl::Status RaiseIdentities(NodeRaiser& node) {
  for (int i = 0; i < node.input_count(); ++i) {
    node.SetOutput(node.Tensor(i), i);
  }
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"IdentityN", RaiseIdentities},
    {"Reshape", RaiseReshape},
    {"Squeeze", RaiseSqueeze},
    {"SqueezeAxes", RaiseSqueeze},
    {"ExpandDims", RaiseExpandDims},
    {"UnsqueezeAxes", RaiseExpandDims},
    {"ReshapeCopy", RaiseReshape},
    {"Transpose", RaiseTranspose},
    {"ConcatV2", RaiseConcatV2},
    {"Concat", RaiseConcat},
    {"Pack", RaisePack},
    {"Unpack", RaiseUnpack},
    {"Split", RaiseSplit},
    {"SplitV", RaiseSplitV},
    {"Pad", RaisePad},
    {"PadV2", RaisePad},
    {"MirrorPad", RaiseMirrorPad},
    {"Tile", RaiseTile},
    {"BroadcastTo", RaiseBroadcastTo},
    {"SpaceToDepth", RaiseBlocks, BuiltinOperator::SPACE_TO_DEPTH},
    {"DepthToSpace", RaiseBlocks, BuiltinOperator::DEPTH_TO_SPACE},
    {"SpaceToBatchND", RaiseBatches, BuiltinOperator::SPACE_TO_BATCH_ND},
    {"BatchToSpaceND", RaiseBatches, BuiltinOperator::BATCH_TO_SPACE_ND},
    {"ReverseV2", RaiseReverse},
    {"Shape", RaiseShape},
};

}  // namespace

absl::Span<const RaisingRow> ArrangementRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
