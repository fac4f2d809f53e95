// Layers: convolutions, fully connected layers and products of matrices.

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/activations.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/weights.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

absl::string_view NameOf(Padding padding) {
  return padding == Padding::SAME ? "SAME" : "VALID";
}

// Height and width of a window's steps.
struct Steps {
  int64_t stride_h, stride_w, dilation_h, dilation_w;
};

absl::Status CheckSteps(const Steps& steps) {
  if (steps.stride_h > 0 && steps.stride_w > 0 && steps.dilation_h > 0 &&
      steps.dilation_w > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "its strides ", steps.stride_h, "x", steps.stride_w, " and dilations ",
      steps.dilation_h, "x", steps.dilation_w, " must be positive"));
}

void SetWindow(tensorflow::NodeDef* node, const Steps& steps, Padding padding) {
  SetInts(node, "strides", {1, steps.stride_h, steps.stride_w, 1});
  if (steps.dilation_h != 1 || steps.dilation_w != 1) {
    SetInts(node, "dilations", {1, steps.dilation_h, steps.dilation_w, 1});
  }
  graph::SetString(node, "padding", NameOf(padding));
}

// Weights [out, height, width, in].
absl::Status LowerConv2D(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Conv2DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Steps steps = {options->stride_h(), options->stride_w(),
                       options->dilation_h_factor(),
                       options->dilation_w_factor()};
  OPTFARM_RETURN_IF_ERROR(CheckSteps(steps));
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 4));
  const Value filter = weights.Permuted({1, 2, 3, 0}, "filter");
  const Value sums = c.Add("Conv2D", "Conv2D", {c.Real(0), filter},
                           [&](tensorflow::NodeDef* node) {
                             SetWindow(node, steps, options->padding());
                           });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 2, 0, weights));
  c.SetReal(0, Activated(c, biased, options->fused_activation_function()));
  return absl::OkStatus();
}

// Weights [1, height, width, channels times multiplier].
absl::StatusOr<Value> DepthwiseFilter(OpLowering& c, const Weights& weights,
                                      int64_t multiplier) {
  const std::vector<int64_t>& shape = weights.shape();
  const std::vector<int64_t> input = ShapeOf(c.in(0));
  if (input.size() == 4 && input[3] > 0) {
    multiplier = shape[3] / input[3];
  }
  if (shape[0] != 1 || multiplier <= 0 || shape[3] <= 0 ||
      shape[3] % multiplier != 0 || shape[1] < 0 || shape[2] < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its weights [", absl::StrJoin(shape, ","), "] do not fit its input [",
        absl::StrJoin(input, ","), "]"));
  }
  const int64_t channels = shape[3] / multiplier;
  const int axis = multiplier == 1 ? 2 : channels == 1 ? 3 : -1;
  return weights.Reshaped(
      {0, 1, 2, 3}, {shape[1], shape[2], channels, multiplier}, axis, "filter");
}

absl::Status LowerDepthwise(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_DepthwiseConv2DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Steps steps = {options->stride_h(), options->stride_w(),
                       options->dilation_h_factor(),
                       options->dilation_w_factor()};
  OPTFARM_RETURN_IF_ERROR(CheckSteps(steps));
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 4));
  if (!c.Has(0)) return absl::InvalidArgumentError("has no input");
  OPTFARM_ASSIGN_OR_RETURN(
      const Value filter,
      DepthwiseFilter(c, weights, options->depth_multiplier()));
  const Value sums = c.Add("DepthwiseConv2dNative", "depthwise",
                           {c.Real(0), filter}, [&](tensorflow::NodeDef* node) {
                             SetWindow(node, steps, options->padding());
                           });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 2, 0, weights));
  c.SetReal(0, Activated(c, biased, options->fused_activation_function()));
  return absl::OkStatus();
}

// Inputs are the output's shape, weights [out, height, width, in], the image
// and a bias. The gradient of a convolution is the same sum.
absl::Status LowerTransposeConv(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_TransposeConvOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const Steps steps = {options->stride_h(), options->stride_w(), 1, 1};
  OPTFARM_RETURN_IF_ERROR(CheckSteps(steps));
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 4));
  const Value filter = weights.Permuted({1, 2, 0, 3}, "filter");
  const Value sums =
      c.Add("Conv2DBackpropInput", "transposed",
            {c.Stored(0), filter, c.Real(2)}, [&](tensorflow::NodeDef* node) {
              SetWindow(node, steps, options->padding());
            });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 3, 2, weights));
  c.SetReal(0, Activated(c, biased, options->fused_activation_function()));
  return absl::OkStatus();
}

// The rows of a matrix of `depth` columns.
Value AsMatrix(OpLowering& c, const Value& value, int64_t depth) {
  if (HasRank(c.in(0)) && ShapeOf(c.in(0)).size() == 2) return value;
  return c.Add("Reshape", "rows",
               {value, c.IntVector("rows/shape", {-1, depth})});
}

// The input's shape with another last dimension.
Value WithLastDimension(OpLowering& c, const Value& value, int64_t size) {
  const std::vector<int64_t> shape = ShapeOf(c.in(0));
  if (shape.size() == 2) return value;
  const Value whole = c.Add("Shape", "input_shape", {c.Stored(0)});
  const Value leading = c.Add(
      "StridedSlice", "leading",
      {whole, c.IntVector("leading/begin", {0}),
       c.IntVector("leading/end", {-1}), c.IntVector("leading/strides", {1})});
  const Value result_shape =
      c.Add("ConcatV2", "result_shape",
            {leading, c.IntVector("outputs", {size}), c.Int("dimension", 0)});
  return c.Add("Reshape", "result", {value, result_shape});
}

// Weights [out, in].
absl::Status LowerFullyConnected(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_FullyConnectedOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->weights_format() !=
      FullyConnectedOptionsWeightsFormat::DEFAULT) {
    return Unsupported("the shuffled format of weights");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 2));
  if (weights.shape()[1] <= 0 || weights.shape()[0] < 0) {
    return Unsupported("weights without a fixed shape");
  }
  const Value rows = AsMatrix(c, c.Real(0), weights.shape()[1]);
  const Value matrix = weights.Permuted({1, 0}, "weights");
  Value result = c.Add("MatMul", "MatMul", {rows, matrix});
  OPTFARM_ASSIGN_OR_RETURN(result, Biased(c, result, 2, 0, weights));
  result = Activated(c, result, options->fused_activation_function());
  if (options->keep_num_dims()) {
    result = WithLastDimension(c, result, weights.shape()[0]);
  }
  c.SetReal(0, result);
  return absl::OkStatus();
}

absl::Status LowerBatchMatMul(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_BatchMatMulOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  c.SetReal(0, c.Add("BatchMatMulV2", "product", {c.Real(0), c.Real(1)},
                     [&](tensorflow::NodeDef* node) {
                       graph::SetBool(node, "adj_x", options->adj_x());
                       graph::SetBool(node, "adj_y", options->adj_y());
                     }));
  return absl::OkStatus();
}

void SetWindow3D(tensorflow::NodeDef* node, const Conv3DOptions& options) {
  SetInts(node, "strides",
          {1, options.stride_d(), options.stride_h(), options.stride_w(), 1});
  SetInts(node, "dilations",
          {1, options.dilation_d_factor(), options.dilation_h_factor(),
           options.dilation_w_factor(), 1});
  graph::SetString(node, "padding", NameOf(options.padding()));
}

// Weights in the graph's order.
absl::Status LowerConv3D(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Conv3DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 5));
  const Value filter = weights.Permuted({0, 1, 2, 3, 4}, "filter");
  const Value sums =
      c.Add("Conv3D", "Conv3D", {c.Real(0), filter},
            [&](tensorflow::NodeDef* node) { SetWindow3D(node, *options); });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 2, 0, weights));
  c.SetReal(0, Activated(c, biased, options->fused_activation_function()));
  return absl::OkStatus();
}

absl::Status LowerConv3DTranspose(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_Conv3DOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  OPTFARM_ASSIGN_OR_RETURN(const Weights weights, Weights::Read(c, 1, 5));
  const Value filter = weights.Permuted({0, 1, 2, 3, 4}, "filter");
  const Value sums = c.Add(
      "Conv3DBackpropInputV2", "transposed", {c.Stored(0), filter, c.Real(2)},
      [&](tensorflow::NodeDef* node) { SetWindow3D(node, *options); });
  OPTFARM_ASSIGN_OR_RETURN(const Value biased, Biased(c, sums, 3, 2, weights));
  c.SetReal(0, Activated(c, biased, options->fused_activation_function()));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::CONV_2D, 9, LowerConv2D},
    {BuiltinOperator::DEPTHWISE_CONV_2D, 8, LowerDepthwise},
    {BuiltinOperator::TRANSPOSE_CONV, 6, LowerTransposeConv},
    {BuiltinOperator::FULLY_CONNECTED, 14, LowerFullyConnected},
    {BuiltinOperator::BATCH_MATMUL, 6, LowerBatchMatMul},
    {BuiltinOperator::CONV_3D, 2, LowerConv3D},
    {BuiltinOperator::CONV_3D_TRANSPOSE, 2, LowerConv3DTranspose},
};

}  // namespace

absl::Span<const OperatorRow> ProductRows() { return kRows; }

}  // namespace optfarm::tflite
