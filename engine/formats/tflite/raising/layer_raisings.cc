// Layers with weights, and pools.

#include <tflite/schema_generated.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/layer_weights.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/formats/tflite/raising/windows.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using graph::PartialShape;
using tflite::BuiltinOperator;
using tflite::TensorType;

// A convolution of either kind once its window and its weights are known.
absl::Status FinishConvolution(NodeRaiser& node, BuiltinOperator op,
                               Window window, Endpoint image,
                               LayerWeights weights, int64_t channels,
                               OperatorOptions options) {
  window.PreferSame(node.view().ShapeOf(image));
  AbsorbPad(node, &window, &image);
  const bool can_multiply =
      CanMultiplyQuantized(weights, node.tensors().shifts_to_signed());
  LayerRequest request;
  request.rule = can_multiply ? ScaleRule::kFree : ScaleRule::kFloatOnly;
  request.inputs = {image};
  request.takes_bias = true;
  request.takes_activation = true;
  const Layer layer = node.Begin(request);
  TensorId input = layer.inputs[0];
  if (window.pads()) input = PadFor(node, input, /*lowest=*/false, &window);
  bool is_hybrid = false;
  const TensorId filter =
      WeightsTensor(node, layer, std::move(weights), &is_hybrid);
  OPTFARM_ASSIGN_OR_RETURN(const TensorId bias,
                           BiasTensor(node, layer, filter, channels));
  window.SetOptions(&options);
  node.Finish(layer, op, {input, filter, bias}, options);
  return absl::OkStatus();
}

// Weights that are computed when the model runs: HWIO becomes OHWI.
absl::Status RaiseDynamicConv2D(NodeRaiser& node, Window window) {
  const PartialShape& shape = node.ShapeOfInput(1);
  if (!shape.has_rank() || shape.rank() != 4 || shape.dim(3) < 0) {
    return absl::FailedPreconditionError(
        "its filter is not constant and of unknown size");
  }
  LayerRequest request;
  request.inputs = {node.input(0)};
  request.takes_bias = true;
  request.takes_activation = true;
  const Layer layer = node.Begin(request);
  window.PreferSame(node.ShapeOfInput(0));
  TensorId input = layer.inputs[0];
  if (window.pads()) input = PadFor(node, input, /*lowest=*/false, &window);
  const TensorId filter = node.EmitBetween(
      BuiltinOperator::TRANSPOSE, {node.Tensor(1), node.Int32s({3, 0, 1, 2})},
      node.Tensor(1),
      PartialShape({shape.dim(3), shape.dim(0), shape.dim(1), shape.dim(2)}));
  OPTFARM_ASSIGN_OR_RETURN(const TensorId bias,
                           BiasTensor(node, layer, filter, shape.dim(3)));
  OperatorOptions options;
  window.SetOptions(&options);
  node.Finish(layer, BuiltinOperator::CONV_2D, {input, filter, bias}, options);
  return absl::OkStatus();
}

absl::Status RaiseConv2D(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(Window window, ReadWindow(node.def()));
  if (!node.view().IsConstant(node.input(1))) {
    return RaiseDynamicConv2D(node, window);
  }
  OPTFARM_ASSIGN_OR_RETURN(Constant filter,
                           node.view().ConstantAt(node.input(1)));
  if (filter.dims.size() != 4) {
    return absl::InvalidArgumentError("its filter must have 4 dimensions");
  }
  const std::vector<int64_t> dims = filter.dims;
  window.size = {dims[0], dims[1]};
  const PartialShape& image = node.ShapeOfInput(0);
  const int64_t depth =
      image.has_rank() && image.rank() == 4 ? image.dim(3) : graph::kUnknownDim;
  LayerWeights weights;
  OperatorOptions options;
  // One input channel for each group: a depthwise layer with the same order of
  // channels.
  if (dims[2] == 1 && depth > 1 && dims[3] % depth == 0) {
    OPTFARM_RETURN_IF_ERROR(Reshape({1, dims[0], dims[1], dims[3]}, &filter));
    weights.constant = std::move(filter);
    weights.channel_axis = 3;
    options.depth_multiplier = static_cast<int>(dims[3] / depth);
    return FinishConvolution(node, BuiltinOperator::DEPTHWISE_CONV_2D, window,
                             node.input(0), std::move(weights), dims[3],
                             options);
  }
  OPTFARM_ASSIGN_OR_RETURN(weights.constant, Transposed(filter, {3, 0, 1, 2}));
  weights.channel_axis = 0;
  return FinishConvolution(node, BuiltinOperator::CONV_2D, window,
                           node.input(0), std::move(weights), dims[3], options);
}

absl::Status RaiseDepthwise(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(Window window, ReadWindow(node.def()));
  OPTFARM_ASSIGN_OR_RETURN(Constant filter,
                           node.view().ConstantAt(node.input(1)));
  if (filter.dims.size() != 4) {
    return absl::InvalidArgumentError("its filter must have 4 dimensions");
  }
  const std::vector<int64_t> dims = filter.dims;
  window.size = {dims[0], dims[1]};
  const int64_t channels = dims[2] * dims[3];
  OPTFARM_RETURN_IF_ERROR(Reshape({1, dims[0], dims[1], channels}, &filter));
  LayerWeights weights;
  weights.constant = std::move(filter);
  weights.channel_axis = 3;
  OperatorOptions options;
  options.depth_multiplier = static_cast<int>(dims[3]);
  return FinishConvolution(node, BuiltinOperator::DEPTHWISE_CONV_2D, window,
                           node.input(0), std::move(weights), channels,
                           options);
}

// The input with an order of dimensions that its last two are exchanged in.
TensorId ExchangedLast(NodeRaiser& node, TensorId input) {
  const PartialShape shape = node.draft().tensor(input).shape;
  std::vector<int64_t> order(shape.rank());
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return node.EmitBetween(BuiltinOperator::TRANSPOSE,
                          {input, node.Int32s(order)}, input,
                          PartialShape(dims));
}

// A product with a constant matrix. `columns_first`: it is [out, in].
absl::Status RaiseFullyConnected(NodeRaiser& node, bool exchanges_input,
                                 bool columns_first) {
  OPTFARM_ASSIGN_OR_RETURN(LayerWeights weights, [&] {
    absl::StatusOr<Constant> matrix = node.view().ConstantAt(node.input(1));
    absl::StatusOr<LayerWeights> made = LayerWeights();
    if (!matrix.ok()) return absl::StatusOr<LayerWeights>(matrix.status());
    // Leading dimensions of 1 are the same as none.
    if (matrix->dims.size() > 2) {
      const size_t rank = matrix->dims.size();
      const absl::Status status =
          Reshape({matrix->dims[rank - 2], matrix->dims[rank - 1]}, &*matrix);
      if (!status.ok()) return absl::StatusOr<LayerWeights>(status);
    }
    if (!columns_first) matrix = Transposed(*matrix, {1, 0});
    if (!matrix.ok()) return absl::StatusOr<LayerWeights>(matrix.status());
    made->constant = *std::move(matrix);
    return made;
  }());
  const int64_t outputs = weights.constant.dims[0];
  const PartialShape& shape = node.ShapeOfInput(0);
  LayerRequest request;
  request.rule =
      !exchanges_input &&
              CanMultiplyQuantized(weights, node.tensors().shifts_to_signed())
          ? ScaleRule::kFree
          : ScaleRule::kFloatOnly;
  request.inputs = {node.input(0)};
  request.takes_bias = true;
  request.takes_activation = true;
  const Layer layer = node.Begin(request);
  TensorId input = layer.inputs[0];
  if (exchanges_input) input = ExchangedLast(node, input);
  // Runtimes that quantize activations themselves want one scale.
  weights.takes_channel_scales = false;
  bool is_hybrid = false;
  const TensorId matrix =
      WeightsTensor(node, layer, std::move(weights), &is_hybrid);
  TensorId bias = kNoTensor;
  if (layer.bias.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(bias, BiasTensor(node, layer, matrix, outputs));
  }
  OperatorOptions options;
  options.keep_dims = shape.has_rank() && shape.rank() > 2;
  options.asymmetric_inputs = is_hybrid;
  node.Finish(layer, BuiltinOperator::FULLY_CONNECTED, {input, matrix, bias},
              options);
  return absl::OkStatus();
}

absl::Status RaiseProduct(NodeRaiser& node, bool exchanges_a,
                          bool exchanges_b) {
  const PartialShape& a = node.ShapeOfInput(0);
  const PartialShape& b = node.ShapeOfInput(1);
  if (!a.has_rank() || !b.has_rank() || a.rank() < 2 || b.rank() < 2) {
    return absl::FailedPreconditionError(
        "the ranks of its inputs are not known, or below 2");
  }
  const bool has_one_matrix = b.is_static() &&
                              b.elements() == b.dim(-1) * b.dim(-2) &&
                              (b.rank() == 2 || b.rank() <= a.rank());
  if (has_one_matrix && node.view().IsConstant(node.input(1)) &&
      (!exchanges_a || a.is_static())) {
    return RaiseFullyConnected(node, exchanges_a, exchanges_b);
  }
  LayerRequest request;
  request.rule = ScaleRule::kFree;
  request.inputs = {node.input(0), node.input(1)};
  const Layer layer = node.Begin(request);
  OperatorOptions options;
  options.adjoint_x = exchanges_a;
  options.adjoint_y = exchanges_b;
  node.Finish(layer, BuiltinOperator::BATCH_MATMUL, layer.inputs, options);
  return absl::OkStatus();
}

absl::Status RaiseMatMul(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool a,
                           graph::GetBoolOr(node.def(), "transpose_a", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool b,
                           graph::GetBoolOr(node.def(), "transpose_b", false));
  return RaiseProduct(node, a, b);
}

absl::Status RaiseBatchMatMul(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const bool a,
                           graph::GetBoolOr(node.def(), "adj_x", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool b,
                           graph::GetBoolOr(node.def(), "adj_y", false));
  return RaiseProduct(node, a, b);
}

absl::Status RaisePool(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(Window window, ReadWindow(node.def()));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> size,
                           graph::GetInts(node.def(), "ksize"));
  if (size.size() != 4 || size[0] != 1 || size[3] != 1) {
    return absl::UnimplementedError(
        "its ksize must be 1 along batch and channels");
  }
  window.size = {size[1], size[2]};
  const bool is_max = node.builtin() == BuiltinOperator::MAX_POOL_2D;
  if (is_max && (window.dilation[0] != 1 || window.dilation[1] != 1)) {
    return absl::UnimplementedError("its dilations must be 1");
  }
  window.PreferSame(node.ShapeOfInput(0));
  if (!is_max && window.pads()) {
    return absl::UnimplementedError(
        "its explicit_paddings are not those of SAME");
  }
  LayerRequest request;
  request.rule = node.rule();
  request.inputs = {node.input(0)};
  request.takes_activation = true;
  const Layer layer = node.Begin(request);
  TensorId input = layer.inputs[0];
  if (window.pads()) input = PadFor(node, input, /*lowest=*/true, &window);
  OperatorOptions options;
  window.SetOptions(&options);
  node.Finish(layer, node.builtin(), {input}, options);
  return absl::OkStatus();
}

// The gradient of a convolution: output sizes, filter HWOI, image.
absl::Status RaiseConv2DBackpropInput(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(Window window, ReadWindow(node.def()));
  OPTFARM_ASSIGN_OR_RETURN(Constant filter,
                           node.view().ConstantAt(node.input(1)));
  if (filter.dims.size() != 4 || window.dilation[0] != 1 ||
      window.dilation[1] != 1 || window.pads()) {
    return absl::UnimplementedError(
        "its filter must have 4 dimensions, no dilation and no explicit "
        "padding");
  }
  OPTFARM_ASSIGN_OR_RETURN(Constant laid_out, Transposed(filter, {2, 0, 1, 3}));
  LayerWeights weights;
  weights.constant = std::move(laid_out);
  const int64_t channels = weights.constant.dims[0];
  LayerRequest request;
  request.rule =
      CanMultiplyQuantized(weights, node.tensors().shifts_to_signed())
          ? ScaleRule::kFree
          : ScaleRule::kFloatOnly;
  request.inputs = {node.input(2)};
  request.takes_bias = true;
  const Layer layer = node.Begin(request);
  bool is_hybrid = false;
  const TensorId matrix =
      WeightsTensor(node, layer, std::move(weights), &is_hybrid);
  std::vector<TensorId> inputs = {node.Int32Input(0), matrix, layer.inputs[0]};
  if (layer.bias.has_value()) {
    OPTFARM_ASSIGN_OR_RETURN(const TensorId bias,
                             BiasTensor(node, layer, matrix, channels));
    inputs.push_back(bias);
  }
  OperatorOptions options;
  window.SetOptions(&options);
  node.Finish(layer, BuiltinOperator::TRANSPOSE_CONV, std::move(inputs),
              options);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Conv2D", RaiseConv2D},
    {"DepthwiseConv2dNative", RaiseDepthwise},
    {"Conv2DBackpropInput", RaiseConv2DBackpropInput},
    {"MatMul", RaiseMatMul},
    {"BatchMatMul", RaiseBatchMatMul},
    {"BatchMatMulV2", RaiseBatchMatMul},
    {"MaxPool", RaisePool, BuiltinOperator::MAX_POOL_2D,
     ScaleRule::kDataMovement},
    {"AvgPool", RaisePool, BuiltinOperator::AVERAGE_POOL_2D, ScaleRule::kSame},
};

}  // namespace

absl::Span<const RaisingRow> LayerRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
