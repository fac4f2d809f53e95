// Signatures of ops on quantized tensors, where each tensor travels with its
// real minimum and maximum, and of the fake quantization that training uses.
// The notation is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view QuantizedOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Between real and quantized.
QuantizeV2(input: float, min_range: float, max_range: float)
  -> (output: T, output_min: float, output_max: float)
  | T: {quantized}; mode: string {MIN_COMBINED, MIN_FIRST, SCALED}
    = MIN_COMBINED;
    late round_mode: string {HALF_AWAY_FROM_ZERO, HALF_TO_EVEN}
    = HALF_AWAY_FROM_ZERO;
    late narrow_range: bool = false; late axis: int = -1;
    late ensure_minimum_range: float = 0.01
Dequantize(input: T, min_range: float, max_range: float) -> (output: dtype)
  | T: {quantized}; mode: string {MIN_COMBINED, MIN_FIRST, SCALED}
    = MIN_COMBINED;
    late narrow_range: bool = false; late axis: int = -1;
    late dtype: {bfloat16, float} = float
QuantizeAndDequantize(input: T) -> (output: T)
  | signed_input: bool = true; num_bits: int = 8; range_given: bool = false;
    input_min: float = 0; input_max: float = 0; T: {floating}
QuantizeAndDequantizeV2(input: T, input_min: T, input_max: T) -> (output: T)
  | signed_input: bool = true; num_bits: int = 8; range_given: bool = false;
    T: {floating};
    late round_mode: string {HALF_TO_EVEN, HALF_UP} = HALF_TO_EVEN;
    late narrow_range: bool = false; late axis: int = -1
QuantizeAndDequantizeV3(
  input: T, input_min: T, input_max: T, num_bits: int32) -> (output: T)
  | signed_input: bool = true; range_given: bool = true; T: {floating};
    late narrow_range: bool = false; late axis: int = -1
FakeQuantWithMinMaxArgs(inputs: float) -> (outputs: float)
  | min: float = -6; max: float = 6; num_bits: int = 8;
    narrow_range: bool = false
FakeQuantWithMinMaxArgsGradient(gradients: float, inputs: float)
  -> (backprops: float)
  | min: float = -6; max: float = 6; num_bits: int = 8;
    narrow_range: bool = false
FakeQuantWithMinMaxVars(inputs: float, min: float, max: float)
  -> (outputs: float) | num_bits: int = 8; narrow_range: bool = false
FakeQuantWithMinMaxVarsGradient(
  gradients: float, inputs: float, min: float, max: float)
  -> (backprops_wrt_input: float, backprop_wrt_min: float,
      backprop_wrt_max: float)
  | num_bits: int = 8; narrow_range: bool = false
FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float, max: float)
  -> (outputs: float) | num_bits: int = 8; narrow_range: bool = false
FakeQuantWithMinMaxVarsPerChannelGradient(
  gradients: float, inputs: float, min: float, max: float)
  -> (backprops_wrt_input: float, backprop_wrt_min: float,
      backprop_wrt_max: float)
  | num_bits: int = 8; narrow_range: bool = false

# From one quantized range to another.
Requantize(
  input: Tinput, input_min: float, input_max: float,
  requested_output_min: float, requested_output_max: float)
  -> (output: out_type, output_min: float, output_max: float)
  | Tinput: {quantized}; out_type: {quantized}
RequantizationRange(input: Tinput, input_min: float, input_max: float)
  -> (output_min: float, output_max: float) | Tinput: {quantized}
RequantizePerChannel(
  input: T, input_min: float, input_max: float, requested_output_min: float,
  requested_output_max: float)
  -> (output: out_type, output_min: float, output_max: float)
  | T: {quantized} = qint32; out_type: {quantized} = quint8
RequantizationRangePerChannel(
  input: T, input_min: float, input_max: float)
  -> (output_min: float, output_max: float)
  | T: {quantized} = qint32; clip_value_max: float
QuantizeDownAndShrinkRange(
  input: Tinput, input_min: float, input_max: float)
  -> (output: out_type, output_min: float, output_max: float)
  | Tinput: {quantized}; out_type: {quantized}

# Arithmetic.
QuantizedAdd, QuantizedMul(
  x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float)
  -> (z: Toutput, min_z: float, max_z: float) commutative
  | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32
QuantizedMatMul(
  a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float)
  -> (out: Toutput, min_out: float, max_out: float)
  | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32;
    transpose_a: bool = false; transpose_b: bool = false;
    Tactivation: {quantized} = quint8
QuantizedBiasAdd(
  input: T1, bias: T2, min_input: float, max_input: float, min_bias: float,
  max_bias: float) -> (output: out_type, min_out: float, max_out: float)
  | T1: {quantized}; T2: {quantized}; out_type: {quantized}
QuantizedConv2D(
  input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float)
  -> (output: out_type, min_output: float, max_output: float)
  | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
    strides: list(int); padding: string {SAME, VALID};
    late dilations: list(int) = [1, 1, 1, 1]
QuantizedConv2DPerChannel, QuantizedDepthwiseConv2D(
  input: Tinput, filter: Tfilter, min_input: float, max_input: float,
  min_filter: float, max_filter: float)
  -> (output: out_type, min_output: float, max_output: float)
  | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
    strides: list(int); padding: string {SAME, VALID};
    dilations: list(int) = [1, 1, 1, 1]
QuantizedConv2DWithBias, QuantizedConv2DWithBiasAndRelu,
  QuantizedDepthwiseConv2DWithBias, QuantizedDepthwiseConv2DWithBiasAndRelu(
  input: Tinput, filter: Tfilter, bias: float, min_input: float,
  max_input: float, min_filter: float, max_filter: float)
  -> (output: out_type, min_output: float, max_output: float)
  | Tinput: {quantized}; Tfilter: {quantized}; out_type: {quantized} = qint32;
    strides: list(int); padding: string {SAME, VALID};
    dilations: list(int) = [1, 1, 1, 1]; late padding_list: list(int) = []
QuantizedConv2DWithBiasAndRequantize(
  input: Tinput, filter: Tfilter, bias: Tbias, min_input: float,
  max_input: float, min_filter: float, max_filter: float,
  min_freezed_output: float, max_freezed_output: float)
  -> (output: out_type, min_output: float, max_output: float)
  | Tinput: {quantized}; Tfilter: {quantized}; Tbias: {float, qint32};
    out_type: {quantized} = qint8; strides: list(int);
    padding: string {SAME, VALID}; dilations: list(int) = [1, 1, 1, 1];
    late padding_list: list(int) = []
QuantizedConv2DWithBiasAndReluAndRequantize,
  QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize(
  input: Tinput, filter: Tfilter, bias: Tbias, min_input: float,
  max_input: float, min_filter: float, max_filter: float,
  min_freezed_output: float, max_freezed_output: float)
  -> (output: out_type, min_output: float, max_output: float)
  | Tinput: {quantized}; Tfilter: {quantized}; Tbias: {float, qint32};
    out_type: {quantized} = quint8; strides: list(int);
    padding: string {SAME, VALID}; dilations: list(int) = [1, 1, 1, 1];
    late padding_list: list(int) = []
QuantizedMatMulWithBias(
  a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
  max_b: float) -> (out: Toutput, min_out: float, max_out: float)
  | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
    Toutput: {quantized} = qint32; transpose_a: bool = false;
    transpose_b: bool = false;
    input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST
QuantizedMatMulWithBiasAndRelu(
  a: T1, b: T2, bias: float, min_a: float, max_a: float, min_b: float,
  max_b: float) -> (out: Toutput, min_out: float, max_out: float)
  | T1: {quantized}; T2: {quantized}; Toutput: {quantized} = qint32;
    transpose_a: bool = false; transpose_b: bool = false;
    input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST
QuantizedMatMulWithBiasAndRequantize,
  QuantizedMatMulWithBiasAndReluAndRequantize(
  a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
  max_b: float, min_freezed_output: float, max_freezed_output: float)
  -> (out: Toutput, min_out: float, max_out: float)
  | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
    Toutput: {quantized} = quint8; transpose_a: bool = false;
    transpose_b: bool = false;
    input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST
QuantizedMatMulWithBiasAndDequantize(
  a: T1, b: T2, bias: Tbias, min_a: float, max_a: float, min_b: float,
  max_b: float, min_freezed_output: float, max_freezed_output: float)
  -> (out: Toutput)
  | T1: {quantized}; T2: {quantized}; Tbias: {float, qint32};
    Toutput: {float}; transpose_a: bool = false; transpose_b: bool = false;
    input_quant_mode: string {MIN_FIRST, SCALED} = MIN_FIRST
QuantizedBatchNormWithGlobalNormalization(
  t: Tinput, t_min: float, t_max: float, m: Tinput, m_min: float,
  m_max: float, v: Tinput, v_min: float, v_max: float, beta: Tinput,
  beta_min: float, beta_max: float, gamma: Tinput, gamma_min: float,
  gamma_max: float)
  -> (result: out_type, result_min: float, result_max: float)
  | Tinput: {quantized}; out_type: {quantized}; variance_epsilon: float;
    scale_after_normalization: bool
QuantizedInstanceNorm(x: T, x_min: float, x_max: float)
  -> (y: T, y_min: float, y_max: float)
  | T: {quantized}; output_range_given: bool = false; given_y_min: float = 0;
    given_y_max: float = 0; variance_epsilon: float = 1e-05;
    min_separation: float = 0.001

# Activations and pooling.
QuantizedRelu, QuantizedRelu6(
  features: Tinput, min_features: float, max_features: float)
  -> (activations: out_type, min_activations: float, max_activations: float)
  | Tinput: {quantized}; out_type: {quantized} = quint8
QuantizedReluX(
  features: Tinput, max_value: float, min_features: float,
  max_features: float)
  -> (activations: out_type, min_activations: float, max_activations: float)
  | Tinput: {quantized}; out_type: {quantized} = quint8
QuantizedAvgPool, QuantizedMaxPool(
  input: T, min_input: float, max_input: float)
  -> (output: T, min_output: float, max_output: float)
  | T: {quantized}; ksize: list(int); strides: list(int);
    padding: string {SAME, VALID}

# Shape.
QuantizedReshape(
  tensor: T, shape: Tshape, input_min: float, input_max: float)
  -> (output: T, output_min: float, output_max: float)
  | T: type; Tshape: {index} = int32
QuantizedConcat(
  concat_dim: int32, values: N*T, input_mins: N*float, input_maxes: N*float)
  -> (output: T, output_min: float, output_max: float)
  | N: int >= 2; T: type
QuantizedConcatV2(
  values: N*T, axis: Tidx, input_mins: N*float, input_maxes: N*float)
  -> (output: T, output_min: float, output_max: float)
  | N: int >= 2; T: type; Tidx: {index} = int32
QuantizedResizeBilinear(
  images: T, size: int32, min: float, max: float)
  -> (resized_images: T, out_min: float, out_max: float)
  | T: {quint8, qint32, float}; align_corners: bool = false;
    late half_pixel_centers: bool = false
)";
  return kText;
}

}  // namespace optfarm::graph
