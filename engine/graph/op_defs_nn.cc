// Signatures of neural network ops: convolution, pooling, normalization,
// activations, recurrent cells, losses, and the optimizers' steps. The notation
// is explained in op_signatures.h.

#include "engine/graph/op_signatures.h"

namespace optfarm::graph {

absl::string_view NnOpSignatures() {
  static constexpr absl::string_view kText = R"(
# Convolution.
Conv2D(input: T, filter: T) -> (output: T)
  | T: {floating, int32}; strides: list(int); use_cudnn_on_gpu: bool = true;
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T)
  -> (output: T)
  | T: {floating}; strides: list(int); use_cudnn_on_gpu: bool = true;
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T)
  -> (output: T)
  | T: {floating, int32}; strides: list(int); use_cudnn_on_gpu: bool = true;
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
DepthwiseConv2dNative(input: T, filter: T) -> (output: T)
  | T: {floating}; strides: list(int);
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
DepthwiseConv2dNativeBackpropInput(
  input_sizes: int32, filter: T, out_backprop: T) -> (output: T)
  | T: {floating}; strides: list(int);
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
DepthwiseConv2dNativeBackpropFilter(
  input: T, filter_sizes: int32, out_backprop: T) -> (output: T)
  | T: {floating}; strides: list(int);
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    late dilations: list(int) = [1, 1, 1, 1]
FusedResizeAndPadConv2D(input: T, size: int32, paddings: int32, filter: T)
  -> (output: T)
  | T: {half, float, double}; resize_align_corners: bool = false;
    mode: string {REFLECT, SYMMETRIC}; strides: list(int);
    padding: string {SAME, VALID}
FusedPadConv2D(input: T, paddings: int32, filter: T) -> (output: T)
  | T: {half, float, double}; mode: string {REFLECT, SYMMETRIC};
    strides: list(int); padding: string {SAME, VALID}
_FusedConv2D(input: T, filter: T, args: num_args*T) -> (output: T)
  | T: {half, float, double}; num_args: int >= 0; strides: list(int);
    padding: string {SAME, VALID, EXPLICIT};
    explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    dilations: list(int) = [1, 1, 1, 1]; use_cudnn_on_gpu: bool = true;
    fused_ops: list(string) = []; epsilon: float = 0.0001;
    leakyrelu_alpha: float = 0.2
_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args*T)
  -> (output: T)
  | T: {half, float, double}; num_args: int >= 0; strides: list(int);
    padding: string {SAME, VALID, EXPLICIT};
    explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC;
    dilations: list(int) = [1, 1, 1, 1]; fused_ops: list(string) = [];
    epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2
_FusedMatMul(a: T, b: T, args: num_args*T) -> (product: T)
  | T: {half, float, double}; num_args: int >= 0; transpose_a: bool = false;
    transpose_b: bool = false; fused_ops: list(string) = [];
    epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2
Conv3D(input: T, filter: T) -> (output: T)
  | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
    data_format: string {NDHWC, NCDHW} = NDHWC;
    late dilations: list(int) = [1, 1, 1, 1, 1]
Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T)
  -> (output: T)
  | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
    data_format: string {NDHWC, NCDHW} = NDHWC;
    late dilations: list(int) = [1, 1, 1, 1, 1];
    late Tshape: {index} = int32
Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T)
  -> (output: T)
  | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
    data_format: string {NDHWC, NCDHW} = NDHWC;
    late dilations: list(int) = [1, 1, 1, 1, 1]
Dilation2D(input: T, filter: T) -> (output: T)
  | T: {real}; strides: list(int) >= 4; rates: list(int) >= 4;
    padding: string {SAME, VALID}
BiasAdd(value: T, bias: T) -> (output: T)
  | T: {number}; data_format: string {NHWC, NCHW} = NHWC
BiasAddV1(value: T, bias: T) -> (output: T) | T: {number}
BiasAddGrad(out_backprop: T) -> (output: T)
  | T: {number}; data_format: string {NHWC, NCHW} = NHWC
DataFormatVecPermute, DataFormatDimMap(x: T) -> (y: T)
  | T: {index} = int32; src_format: string = NHWC; dst_format: string = NCHW

# Pooling.
AvgPool(value: T) -> (output: T)
  | ksize: list(int) >= 4; strides: list(int) >= 4;
    padding: string {SAME, VALID};
    data_format: string {NHWC, NCHW} = NHWC; T: {floating}
AvgPoolGrad(orig_input_shape: int32, grad: T) -> (output: T)
  | ksize: list(int) >= 4; strides: list(int) >= 4;
    padding: string {SAME, VALID};
    data_format: string {NHWC, NCHW} = NHWC; T: {floating}
MaxPool(input: T) -> (output: T)
  | T: {real, qint8} = float; ksize: list(int) >= 4; strides: list(int) >= 4;
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC
FractionalMaxPool, FractionalAvgPool(value: T)
  -> (output: T, row_pooling_sequence: int64, col_pooling_sequence: int64)
  | pooling_ratio: list(float) >= 4; pseudo_random: bool = false;
    overlapping: bool = false; deterministic: bool = false; seed: int = 0;
    seed2: int = 0; T: {float, double, int32, int64}
MaxPoolV2(input: T, ksize: int32, strides: int32) -> (output: T)
  | T: {real, qint8} = float; padding: string {SAME, VALID};
    data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC
MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> (output: T)
  | ksize: list(int) >= 4; strides: list(int) >= 4;
    padding: string {SAME, VALID, EXPLICIT};
    late explicit_paddings: list(int) = [];
    data_format: string {NHWC, NCHW} = NHWC; T: {real} = float
MaxPoolWithArgmax(input: T) -> (output: T, argmax: Targmax)
  | ksize: list(int) >= 4; strides: list(int) >= 4; Targmax: {index} = int64;
    padding: string {SAME, VALID}; late include_batch_in_index: bool = false;
    T: {real}
AvgPool3D(input: T) -> (output: T)
  | ksize: list(int) >= 5; strides: list(int) >= 5;
    padding: string {SAME, VALID};
    data_format: string {NDHWC, NCDHW} = NDHWC; T: {floating}
MaxPool3D(input: T) -> (output: T)
  | ksize: list(int) >= 5; strides: list(int) >= 5;
    padding: string {SAME, VALID};
    data_format: string {NDHWC, NCDHW} = NDHWC; T: {half, bfloat16, float}

# Normalization.
BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T, gamma: T)
  -> (result: T)
  | T: {number}; variance_epsilon: float; scale_after_normalization: bool
FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T)
  -> (y: T, batch_mean: T, batch_variance: T, reserve_space_1: T,
      reserve_space_2: T)
  | T: {float}; epsilon: float = 0.0001;
    late exponential_avg_factor: float = 1;
    data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true
FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U)
  -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U,
      reserve_space_2: U)
  | T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001;
    late exponential_avg_factor: float = 1;
    data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true
FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U)
  -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U,
      reserve_space_2: U, reserve_space_3: U)
  | T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 0.0001;
    late exponential_avg_factor: float = 1;
    data_format: string {NHWC, NCHW, NDHWC, NCDHW} = NHWC;
    is_training: bool = true
FusedBatchNormGrad(
  y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T)
  -> (x_backprop: T, scale_backprop: T, offset_backprop: T,
      reserve_space_3: T, reserve_space_4: T)
  | T: {float}; epsilon: float = 0.0001;
    data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true
LRN(input: T) -> (output: T)
  | depth_radius: int = 5; bias: float = 1; alpha: float = 1;
    beta: float = 0.5; T: {half, bfloat16, float} = float
LRNGrad(input_grads: T, input_image: T, output_image: T) -> (output: T)
  | depth_radius: int = 5; bias: float = 1; alpha: float = 1;
    beta: float = 0.5; T: {half, bfloat16, float} = float

# Activations.
Relu(features: T) -> (activations: T) | T: {real, qint8}
Relu6(features: T) -> (activations: T) | T: {real}
ReluGrad, Relu6Grad(gradients: T, features: T) -> (backprops: T) | T: {real}
LeakyRelu(features: T) -> (activations: T)
  | alpha: float = 0.2; T: {floating} = float
LeakyReluGrad(gradients: T, features: T) -> (backprops: T)
  | alpha: float = 0.2; T: {floating} = float
Elu, Selu, Softplus, Softsign(features: T) -> (activations: T) | T: {floating}
EluGrad, SeluGrad(gradients: T, outputs: T) -> (backprops: T) | T: {floating}
SoftplusGrad, SoftsignGrad(gradients: T, features: T) -> (backprops: T)
  | T: {floating}
Softmax(logits: T) -> (softmax: T) | T: {floating}
LogSoftmax(logits: T) -> (logsoftmax: T) | T: {floating}

# Losses and rankings.
L2Loss(t: T) -> (output: T) | T: {floating}
SoftmaxCrossEntropyWithLogits(features: T, labels: T)
  -> (loss: T, backprop: T) | T: {floating}
SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels)
  -> (loss: T, backprop: T) | T: {floating}; Tlabels: {index} = int64
InTopK(predictions: float, targets: T) -> (precision: bool)
  | k: int; T: {index} = int32
InTopKV2(predictions: float, targets: T, k: T) -> (precision: bool)
  | T: {index} = int32
TopK(input: T) -> (values: T, indices: int32)
  | k: int >= 0; sorted: bool = true; T: {real}
TopKV2(input: T, k: Tk) -> (values: T, indices: index_type)
  | sorted: bool = true; T: {real}; late Tk: {int16, int32, int64} = int32;
    late index_type: {int16, uint16, int32, int64} = int32
NthElement(input: T, n: int32) -> (values: T)
  | reverse: bool = false; T: {real}
CTCLoss(
  inputs: T, labels_indices: int64, labels_values: int32,
  sequence_length: int32) -> (loss: T, gradient: T)
  | preprocess_collapse_repeated: bool = false;
    ctc_merge_repeated: bool = true;
    ignore_longer_outputs_than_inputs: bool = false;
    late T: {float, double} = float
CTCGreedyDecoder(inputs: T, sequence_length: int32)
  -> (decoded_indices: int64, decoded_values: int64, decoded_shape: int64,
      log_probability: T)
  | merge_repeated: bool = false; late blank_index: int = -1;
    late T: {float, double} = float
CTCBeamSearchDecoder(inputs: T, sequence_length: int32)
  -> (decoded_indices: top_paths*int64, decoded_values: top_paths*int64,
      decoded_shape: top_paths*int64, log_probability: T)
  | beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true;
    late T: {float, double} = float

# Recurrent cells.
GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T)
  -> (r: T, u: T, c: T, h: T) | T: {float}
LSTMBlockCell(
  x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T)
  -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
  | forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false;
    T: {half, float}
BlockLSTM(
  seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T,
  wco: T, b: T) -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
  | forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false;
    T: {half, float}
BlockLSTMV2(
  seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T,
  wco: T, b: T) -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
  | cell_clip: float = 0; use_peephole: bool = false; T: {half, float}

# Steps of optimizers; found in graphs saved while training.
ApplyGradientDescent(var: &T, alpha: T, delta: T) -> (out: &T)
  | T: {number}; use_locking: bool = false
ApplyMomentum(var: &T, accum: &T, lr: T, grad: T, momentum: T) -> (out: &T)
  | T: {number}; use_locking: bool = false; use_nesterov: bool = false
ApplyAdam(
  var: &T, m: &T, v: &T, beta1_power: T, beta2_power: T, lr: T, beta1: T,
  beta2: T, epsilon: T, grad: T) -> (out: &T)
  | T: {number}; use_locking: bool = false; use_nesterov: bool = false
ApplyAdagrad(var: &T, accum: &T, lr: T, grad: T) -> (out: &T)
  | T: {number}; use_locking: bool = false; late update_slots: bool = true
ApplyAdadelta(
  var: &T, accum: &T, accum_update: &T, lr: T, rho: T, epsilon: T, grad: T)
  -> (out: &T) | T: {number}; use_locking: bool = false
ApplyRMSProp(
  var: &T, ms: &T, mom: &T, lr: T, rho: T, momentum: T, epsilon: T, grad: T)
  -> (out: &T) | T: {number}; use_locking: bool = false
ApplyFtrl(
  var: &T, accum: &T, linear: &T, grad: T, lr: T, l1: T, l2: T, lr_power: T)
  -> (out: &T)
  | T: {number}; use_locking: bool = false;
    late multiply_linear_by_lr: bool = false
ResourceApplyGradientDescent(var: resource, alpha: T, delta: T) stateful
  | T: {number}; use_locking: bool = false
ResourceApplyMomentum(
  var: resource, accum: resource, lr: T, grad: T, momentum: T) stateful
  | T: {number}; use_locking: bool = false; use_nesterov: bool = false
ResourceApplyKerasMomentum(
  var: resource, accum: resource, lr: T, grad: T, momentum: T) stateful
  | T: {number}; use_locking: bool = false; use_nesterov: bool = false
ResourceApplyAdam(
  var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T,
  lr: T, beta1: T, beta2: T, epsilon: T, grad: T) stateful
  | T: {number}; use_locking: bool = false; use_nesterov: bool = false
ResourceApplyAdagrad(var: resource, accum: resource, lr: T, grad: T) stateful
  | T: {number}; use_locking: bool = false; late update_slots: bool = true
ResourceApplyRMSProp(
  var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T,
  epsilon: T, grad: T) stateful
  | T: {number}; use_locking: bool = false
)";
  return kText;
}

}  // namespace optfarm::graph
