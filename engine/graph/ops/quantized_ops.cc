// Rows of ops on quantized tensors, where each tensor travels with its real
// minimum and maximum, and of the fake quantization that training uses.
// op_row.h says what they hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/shapes/multiply_adds.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr char kQuantizedConv2DPerChannelSignature[] =
    R"((
       input: Tinput, filter: Tfilter, min_input: float, max_input: float,
       min_filter: float, max_filter: float)
       -> (output: out_type, min_output: float, max_output: float)
       | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
       strides: list(int); padding: string {SAME, VALID};
       dilations: list(int) = [1, 1, 1, 1])";

constexpr char kQuantizedConv2DWithBiasSignature[] =
    R"((
       input: Tinput, filter: Tfilter, bias: float, min_input: float,
       max_input: float, min_filter: float, max_filter: float)
       -> (output: out_type, min_output: float, max_output: float)
       | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
       strides: list(int); padding: string {SAME, VALID};
       dilations: list(int) = [1, 1, 1, 1]; late padding_list: list(int) = [])";

constexpr char kQuantizedConv2DWithBiasAndReluAndRequantizeSignature[] =
    R"((
       input: Tinput, filter: Tfilter, bias: Tbias, min_input: float,
       max_input: float, min_filter: float, max_filter: float,
       min_freezed_output: float, max_freezed_output: float)
       -> (output: out_type, min_output: float, max_output: float)
       | Tinput: {quantized}; Tfilter: {quantized}; Tbias: {float, qint32};
       out_type: {quantized} = quint8; strides: list(int);
       padding: string {SAME, VALID}; dilations: list(int) = [1, 1, 1, 1];
       late padding_list: list(int) = [])";

constexpr char kQuantizedMatMulWithBiasAndRequantizeSignature[] =
    R"((
       a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
       max_b: float, min_freezed_output: float, max_freezed_output: float)
       -> (out: Toutput, min_out: float, max_out: float)
       | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
       Toutput: {quantized} = quint8; transpose_a: bool = false;
       transpose_b: bool = false;
       input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST)";

constexpr char kQuantizedArithmeticSignature[] =
    R"((
       x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float)
       -> (z: Toutput, min_z: float, max_z: float) commutative
       | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32)";

constexpr char kQuantizedPoolSignature[] =
    R"((
       input: T, min_input: float, max_input: float)
       -> (output: T, min_output: float, max_output: float)
       | T: {quantized}; ksize: list(int); strides: list(int);
       padding: string {SAME, VALID})";

constexpr char kQuantizedReluSignature[] =
    R"((
       features: Tinput, min_features: float, max_features: float)
       -> (activations: out_type, min_activations: float, max_activations: float)
       | Tinput: {quantized}; out_type: {quantized} = quint8)";

// What a whole layer does besides its products.
enum class LayerTail : uint8_t { kNone, kBias, kBiasAndRelu };

constexpr ShapeFunction ShapeOf(LayerProduct product, LayerResult result) {
  const bool has_32_bits = result == LayerResult::kAccumulators;
  switch (product) {
    case LayerProduct::kConvolution:
      return has_32_bits ? AccumulatorConvolutionShape : Conv2dShape;
    case LayerProduct::kDepthwise:
      return has_32_bits ? AccumulatorDepthwiseShape : DepthwiseConv2dShape;
    case LayerProduct::kMatrix:
      return has_32_bits ? AccumulatorMatMulShape : MatMulShape;
    case LayerProduct::kNone:
      break;
  }
  return nullptr;
}

constexpr MultiplyAddsFunction MultiplyAddsOf(LayerProduct product) {
  return product == LayerProduct::kConvolution ? ConvolutionMultiplyAdds
         : product == LayerProduct::kDepthwise ? DepthwiseMultiplyAdds
                                               : MatMulMultiplyAdds;
}

// The row of a layer on quantized values whose weights may have a range for
// each channel. Its inputs are the input, the weights, the bias if there is
// one, the ranges of input and weights, and the range of the result if that has
// 8 bits.
constexpr OpRow PerChannelLayer(const char* name, const char* signature,
                                LayerProduct product, LayerTail tail,
                                LayerResult result) {
  const bool has_bias = tail != LayerTail::kNone;
  return {.names = name,
          .signature = signature,
          .shape = ShapeOf(product, result),
          .layer = {.product = product,
                    .is_quantized = true,
                    .has_channel_ranges = true,
                    .has_bias = has_bias,
                    .has_relu = tail == LayerTail::kBiasAndRelu,
                    .result = result},
          .multiply_adds = MultiplyAddsOf(product),
          .range_input = static_cast<int8_t>(has_bias ? 3 : 2),
          .output_range_input = static_cast<int8_t>(
              result == LayerResult::kQuantizedValues ? 7 : -1),
          .origin = Origin::kLaterTensorFlow};
}

constexpr OpRow kRows[] = {
    // Between real and quantized.
    {.names = "QuantizeV2",
     .signature = R"((input: float, min_range: float, max_range: float)
       -> (output: T, output_min: float, output_max: float)
       | T: {quantized}; mode: string {MIN_COMBINED, MIN_FIRST, SCALED}
       = MIN_COMBINED;
       late round_mode: string {HALF_AWAY_FROM_ZERO, HALF_TO_EVEN}
       = HALF_AWAY_FROM_ZERO;
       late narrow_range: bool = false; late axis: int = -1;
       late ensure_minimum_range: float = 0.01)",
     .shape = QuantizeShape,
     .demand = InputDemand::kAsOutput,
     .role = OpRole::kQuantize,
     .output_range_input = 1},
    {.names = "Dequantize",
     .signature =
         R"((input: T, min_range: float, max_range: float) -> (output: dtype)
       | T: {quantized}; mode: string {MIN_COMBINED, MIN_FIRST, SCALED}
       = MIN_COMBINED;
       late narrow_range: bool = false; late axis: int = -1;
       late dtype: {bfloat16, float} = float)",
     .shape = UnchangedShape,
     .role = OpRole::kDequantize,
     .range_input = 1},
    {.names = "QuantizeAndDequantize",
     .signature = R"((input: T) -> (output: T)
       | signed_input: bool = true; num_bits: int = 8; range_given: bool = false;
       input_min: float = 0; input_max: float = 0; T: {floating})",
     .shape = UnchangedShape},
    {.names = "QuantizeAndDequantizeV2",
     .signature = R"((input: T, input_min: T, input_max: T) -> (output: T)
       | signed_input: bool = true; num_bits: int = 8; range_given: bool = false;
       T: {floating};
       late round_mode: string {HALF_TO_EVEN, HALF_UP} = HALF_TO_EVEN;
       late narrow_range: bool = false; late axis: int = -1)",
     .shape = UnchangedShape},
    {.names = "QuantizeAndDequantizeV3",
     .signature = R"((
       input: T, input_min: T, input_max: T, num_bits: int32) -> (output: T)
       | signed_input: bool = true; range_given: bool = true; T: {floating};
       late narrow_range: bool = false; late axis: int = -1)",
     .shape = UnchangedShape},
    {.names = "FakeQuantWithMinMaxArgs",
     .signature = R"((inputs: float) -> (outputs: float)
       | min: float = -6; max: float = 6; num_bits: int = 8;
       narrow_range: bool = false)",
     .shape = UnchangedShape,
     .demand = InputDemand::kAsOutput},
    {.names = "FakeQuantWithMinMaxArgsGradient",
     .signature = R"((gradients: float, inputs: float)
       -> (backprops: float)
       | min: float = -6; max: float = 6; num_bits: int = 8;
       narrow_range: bool = false)",
     .shape = UnchangedShape},
    {.names = "FakeQuantWithMinMaxVars",
     .signature = R"((inputs: float, min: float, max: float)
       -> (outputs: float) | num_bits: int = 8; narrow_range: bool = false)",
     .shape = UnchangedShape,
     .demand = InputDemand::kAsOutput,
     .role = OpRole::kFakeQuantize},
    {.names = "FakeQuantWithMinMaxVarsGradient",
     .signature = R"((
       gradients: float, inputs: float, min: float, max: float)
       -> (backprops_wrt_input: float, backprop_wrt_min: float,
       backprop_wrt_max: float)
       | num_bits: int = 8; narrow_range: bool = false)",
     .shape = FakeQuantGradientShape},
    {.names = "FakeQuantWithMinMaxVarsPerChannel",
     .signature = R"((inputs: float, min: float, max: float)
       -> (outputs: float) | num_bits: int = 8; narrow_range: bool = false)",
     .shape = UnchangedShape},
    {.names = "FakeQuantWithMinMaxVarsPerChannelGradient",
     .signature = R"((
       gradients: float, inputs: float, min: float, max: float)
       -> (backprops_wrt_input: float, backprop_wrt_min: float,
       backprop_wrt_max: float)
       | num_bits: int = 8; narrow_range: bool = false)",
     .shape = FakeQuantGradientShape},

    // From one quantized range to another.
    {.names = "Requantize",
     .signature = R"((
       input: Tinput, input_min: float, input_max: float,
       requested_output_min: float, requested_output_max: float)
       -> (output: out_type, output_min: float, output_max: float)
       | Tinput: {quantized}; out_type: {quantized})",
     .shape = UnchangedThenScalars,
     .role = OpRole::kRequantize,
     .range_input = 1,
     .output_range_input = 3},
    {.names = "RequantizationRange",
     .signature = R"((input: Tinput, input_min: float, input_max: float)
       -> (output_min: float, output_max: float) | Tinput: {quantized})",
     .shape = ScalarOutputs,
     .role = OpRole::kRequantizationRange,
     .range_input = 1},
    {.names = "RequantizePerChannel",
     .signature = R"((
       input: T, input_min: float, input_max: float, requested_output_min: float,
       requested_output_max: float)
       -> (output: out_type, output_min: float, output_max: float)
       | T: {quantized} = qint32; out_type: {quantized} = quint8)",
     .shape = UnchangedThenScalars,
     .role = OpRole::kRequantizePerChannel,
     .range_input = 1,
     .output_range_input = 3,
     .origin = Origin::kLaterTensorFlow},
    {.names = "RequantizationRangePerChannel",
     .signature = R"((
       input: T, input_min: float, input_max: float)
       -> (output_min: float, output_max: float)
       | T: {quantized} = qint32; clip_value_max: float)",
     .shape = ScalarOutputs,
     .role = OpRole::kRequantizationRangePerChannel,
     .range_input = 1,
     .origin = Origin::kLaterTensorFlow},
    {.names = "QuantizeDownAndShrinkRange",
     .signature = R"((
       input: Tinput, input_min: float, input_max: float)
       -> (output: out_type, output_min: float, output_max: float)
       | Tinput: {quantized}; out_type: {quantized})",
     .shape = UnchangedThenScalars,
     .range_input = 1},

    // Arithmetic.
    {.names = "QuantizedAdd",
     .signature = kQuantizedArithmeticSignature,
     .shape = BroadcastTwo,
     .role = OpRole::kQuantizedAdd,
     .float_op = "Add",
     .range_input = 2},
    {.names = "QuantizedMul",
     .signature = kQuantizedArithmeticSignature,
     .shape = BroadcastTwo,
     .role = OpRole::kQuantizedMultiply,
     .float_op = "Mul",
     .range_input = 2},
    {.names = "QuantizedMatMul",
     .signature = R"((
       a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float)
       -> (out: Toutput, min_out: float, max_out: float)
       | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32;
       transpose_a: bool = false; transpose_b: bool = false;
       Tactivation: {quantized} = quint8)",
     .shape = MatMulShape,
     .layer = {.product = LayerProduct::kMatrix,
               .is_quantized = true,
               .result = LayerResult::kAccumulators},
     .multiply_adds = MatMulMultiplyAdds,
     .range_input = 2},
    {.names = "QuantizedBiasAdd",
     .signature = R"((
       input: T1, bias: T2, min_input: float, max_input: float, min_bias: float,
       max_bias: float) -> (output: out_type, min_out: float, max_out: float)
       | T1: {quantized}; T2: {quantized}; out_type: {quantized})",
     .shape = BiasAddShape,
     .role = OpRole::kQuantizedBiasAdd,
     .float_op = "BiasAdd",
     .range_input = 2},
    {.names = "QuantizedConv2D",
     .signature = R"((
       input: Tinput, filter: Tfilter, min_input: float, max_input: float,
       min_filter: float, max_filter: float)
       -> (output: out_type, min_output: float, max_output: float)
       | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
       strides: list(int); padding: string {SAME, VALID};
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dShape,
     .layer = {.product = LayerProduct::kConvolution,
               .is_quantized = true,
               .result = LayerResult::kAccumulators},
     .multiply_adds = ConvolutionMultiplyAdds,
     .range_input = 2},
    PerChannelLayer("QuantizedConv2DPerChannel",
                    kQuantizedConv2DPerChannelSignature,
                    LayerProduct::kConvolution, LayerTail::kNone,
                    LayerResult::kAccumulators),
    PerChannelLayer(
        "QuantizedDepthwiseConv2D", kQuantizedConv2DPerChannelSignature,
        LayerProduct::kDepthwise, LayerTail::kNone, LayerResult::kAccumulators),
    PerChannelLayer("QuantizedConv2DWithBias",
                    kQuantizedConv2DWithBiasSignature,
                    LayerProduct::kConvolution, LayerTail::kBias,
                    LayerResult::kAccumulators),
    PerChannelLayer("QuantizedConv2DWithBiasAndRelu",
                    kQuantizedConv2DWithBiasSignature,
                    LayerProduct::kConvolution, LayerTail::kBiasAndRelu,
                    LayerResult::kAccumulators),
    PerChannelLayer("QuantizedDepthwiseConv2DWithBias",
                    kQuantizedConv2DWithBiasSignature, LayerProduct::kDepthwise,
                    LayerTail::kBias, LayerResult::kAccumulators),
    PerChannelLayer("QuantizedDepthwiseConv2DWithBiasAndRelu",
                    kQuantizedConv2DWithBiasSignature, LayerProduct::kDepthwise,
                    LayerTail::kBiasAndRelu, LayerResult::kAccumulators),
    PerChannelLayer("QuantizedConv2DWithBiasAndRequantize",
                    R"((
       input: Tinput, filter: Tfilter, bias: Tbias, min_input: float,
       max_input: float, min_filter: float, max_filter: float,
       min_freezed_output: float, max_freezed_output: float)
       -> (output: out_type, min_output: float, max_output: float)
       | Tinput: {quantized}; Tfilter: {quantized}; Tbias: {float, qint32};
       out_type: {quantized} = qint8; strides: list(int);
       padding: string {SAME, VALID}; dilations: list(int) = [1, 1, 1, 1];
       late padding_list: list(int) = [])",
                    LayerProduct::kConvolution, LayerTail::kBias,
                    LayerResult::kQuantizedValues),
    PerChannelLayer("QuantizedConv2DWithBiasAndReluAndRequantize",
                    kQuantizedConv2DWithBiasAndReluAndRequantizeSignature,
                    LayerProduct::kConvolution, LayerTail::kBiasAndRelu,
                    LayerResult::kQuantizedValues),
    PerChannelLayer("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize",
                    kQuantizedConv2DWithBiasAndReluAndRequantizeSignature,
                    LayerProduct::kDepthwise, LayerTail::kBiasAndRelu,
                    LayerResult::kQuantizedValues),
    PerChannelLayer("QuantizedMatMulWithBias", R"((
       a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
       max_b: float) -> (out: Toutput, min_out: float, max_out: float)
       | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
       Toutput: {quantized} = qint32; transpose_a: bool = false;
       transpose_b: bool = false;
       input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST)",
                    LayerProduct::kMatrix, LayerTail::kBias,
                    LayerResult::kAccumulators),
    PerChannelLayer("QuantizedMatMulWithBiasAndRelu", R"((
       a: T1, b: T2, bias: float, min_a: float, max_a: float, min_b: float,
       max_b: float) -> (out: Toutput, min_out: float, max_out: float)
       | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32;
       transpose_a: bool = false; transpose_b: bool = false;
       input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST)",
                    LayerProduct::kMatrix, LayerTail::kBiasAndRelu,
                    LayerResult::kAccumulators),
    PerChannelLayer("QuantizedMatMulWithBiasAndRequantize",
                    kQuantizedMatMulWithBiasAndRequantizeSignature,
                    LayerProduct::kMatrix, LayerTail::kBias,
                    LayerResult::kQuantizedValues),
    PerChannelLayer("QuantizedMatMulWithBiasAndReluAndRequantize",
                    kQuantizedMatMulWithBiasAndRequantizeSignature,
                    LayerProduct::kMatrix, LayerTail::kBiasAndRelu,
                    LayerResult::kQuantizedValues),
    PerChannelLayer("QuantizedMatMulWithBiasAndDequantize", R"((
       a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
       max_b: float, min_freezed_output: float, max_freezed_output: float)
       -> (out: Toutput)
       | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
       Toutput: {float}; transpose_a: bool = false; transpose_b: bool = false;
       input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST)",
                    LayerProduct::kMatrix, LayerTail::kBias,
                    LayerResult::kFloats),
    {.names = "QuantizedBatchNormWithGlobalNormalization",
     .signature = R"((
       t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float,
       m_max: float, v: Tinput, v_min: float, v_max: float, beta: Tinput,
       beta_min: float, beta_max: float, gamma: Tinput, gamma_min: float,
       gamma_max: float)
       -> (result: out_type, result_min: float, result_max: float)
       | Tinput: {quantized}; out_type: {quantized}; variance_epsilon: float;
       scale_after_normalization: bool)",
     .shape = QuantizedBatchNormShape,
     .range_input = 1},
    {.names = "QuantizedInstanceNorm",
     .signature = R"((x: T, x_min: float, x_max: float)
       -> (y: T, y_min: float, y_max: float)
       | T: {quantized}; output_range_given: bool = false; given_y_min: float = 0;
       given_y_max: float = 0; variance_epsilon: float = 1e-05;
       min_separation: float = 0.001)",
     .shape = UnchangedThenScalars,
     .range_input = 1},

    // Activations and pooling.
    {.names = "QuantizedRelu",
     .signature = kQuantizedReluSignature,
     .shape = UnchangedThenScalars,
     .flow = ValueFlow::kRangePreserving,
     .activation = Activation::kRelu,
     .float_op = "Relu",
     .range_input = 1,
     .keeps_range = true},
    {.names = "QuantizedRelu6",
     .signature = kQuantizedReluSignature,
     .shape = UnchangedThenScalars,
     .flow = ValueFlow::kRangePreserving,
     .activation = Activation::kRelu6,
     .float_op = "Relu6",
     .range_input = 1,
     .keeps_range = true},
    {.names = "QuantizedReluX",
     .signature = R"((
       features: Tinput, max_value: float, min_features: float,
       max_features: float)
       -> (activations: out_type, min_activations: float, max_activations: float)
       | Tinput: {quantized}; out_type: {quantized} = quint8)",
     .shape = UnchangedThenScalars,
     .range_input = 2},
    {.names = "QuantizedAvgPool",
     .signature = kQuantizedPoolSignature,
     .shape = Pool2dShape,
     .role = OpRole::kQuantizedAveragePool,
     .flow = ValueFlow::kRangePreserving,
     .float_op = "AvgPool",
     .range_input = 1,
     .keeps_range = true},
    {.names = "QuantizedMaxPool",
     .signature = kQuantizedPoolSignature,
     .shape = Pool2dShape,
     .role = OpRole::kQuantizedMaxPool,
     .flow = ValueFlow::kRangePreserving,
     .float_op = "MaxPool",
     .range_input = 1,
     .keeps_range = true},

    // Shape.
    {.names = "QuantizedReshape",
     .signature = R"((
       tensor: T, shape: Tshape, input_min: float, input_max: float)
       -> (output: T, output_min: float, output_max: float)
       | T: type; Tshape: {index} = int32)",
     .shape = ReshapeShape,
     .flow = ValueFlow::kReshaping,
     .float_op = "Reshape",
     .range_input = 2,
     .keeps_range = true},
    {.names = "QuantizedConcat",
     .signature = R"((
       concat_dim: int32, values: N*T, input_mins: N*float, input_maxes: N*float)
       -> (output: T, output_min: float, output_max: float)
       | N: int >= 2; T: type)",
     .shape = QuantizedConcatShape,
     .role = OpRole::kQuantizedConcat,
     .flow = ValueFlow::kDataMovement,
     .has_axis_first = true},
    {.names = "QuantizedConcatV2",
     .signature = R"((
       values: N*T, axis: Tidx, input_mins: N*float, input_maxes: N*float)
       -> (output: T, output_min: float, output_max: float)
       | N: int >= 2; T: type; Tidx: {index} = int32)",
     .shape = QuantizedConcatV2Shape,
     .role = OpRole::kQuantizedConcat,
     .flow = ValueFlow::kDataMovement,
     .origin = Origin::kLaterTensorFlow},
    {.names = "QuantizedResizeBilinear",
     .signature = R"((
       images: T, size: int32, min: float, max: float)
       -> (resized_images: T, out_min: float, out_max: float)
       | T: {quint8, qint32, float}; align_corners: bool = false;
       late half_pixel_centers: bool = false)",
     .shape = ResizeShape,
     .flow = ValueFlow::kRangePreserving,
     .float_op = "ResizeBilinear",
     .range_input = 2,
     .keeps_range = true},
};

}  // namespace

absl::Span<const OpRow> QuantizedOps() { return kRows; }

}  // namespace optfarm::graph
