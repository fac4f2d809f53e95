// Rows of neural network ops: convolution, pooling, normalization, activations,
// recurrent cells, losses, and the optimizers' steps. op_row.h says what they
// hold.

#include "engine/graph/ops/op_families.h"
#include "engine/graph/ops/quantized_forms.h"
#include "engine/graph/shapes/multiply_adds.h"
#include "engine/graph/shapes/shape_functions.h"

namespace optfarm::graph {
namespace {

constexpr OpRow kRows[] = {
    // Convolution.
    {.names = "Conv2D",
     .signature = R"((input: T, filter: T) -> (output: T)
       | T: {floating, int32}; strides: list(int); use_cudnn_on_gpu: bool = true;
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dShape,
     .demand = InputDemand::kFilterChannels,
     .layer = {.product = LayerProduct::kConvolution},
     .multiply_adds = ConvolutionMultiplyAdds,
     .quantized = &kQuantizedConv2dForm},
    {.names = "Conv2DBackpropFilter",
     .signature = R"((input: T, filter_sizes: int32, out_backprop: T)
       -> (output: T)
       | T: {floating}; strides: list(int); use_cudnn_on_gpu: bool = true;
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dBackpropFilterShape},
    {.names = "Conv2DBackpropInput",
     .signature = R"((input_sizes: int32, filter: T, out_backprop: T)
       -> (output: T)
       | T: {floating, int32}; strides: list(int); use_cudnn_on_gpu: bool = true;
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dBackpropInputShape},
    {.names = "DepthwiseConv2dNative",
     .signature = R"((input: T, filter: T) -> (output: T)
       | T: {floating}; strides: list(int);
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = DepthwiseConv2dShape,
     .demand = InputDemand::kFilterChannels,
     .layer = {.product = LayerProduct::kDepthwise},
     .multiply_adds = DepthwiseMultiplyAdds,
     .quantized = &kQuantizedDepthwiseForm},
    {.names = "DepthwiseConv2dNativeBackpropInput",
     .signature = R"((
       input_sizes: int32, filter: T, out_backprop: T) -> (output: T)
       | T: {floating}; strides: list(int);
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dBackpropInputShape},
    {.names = "DepthwiseConv2dNativeBackpropFilter",
     .signature = R"((
       input: T, filter_sizes: int32, out_backprop: T) -> (output: T)
       | T: {floating}; strides: list(int);
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       late dilations: list(int) = [1, 1, 1, 1])",
     .shape = Conv2dBackpropFilterShape},
    {.names = "FusedResizeAndPadConv2D",
     .signature = R"((input: T, size: int32, paddings: int32, filter: T)
       -> (output: T)
       | T: {half, float, double}; resize_align_corners: bool = false;
       mode: string {REFLECT, SYMMETRIC}; strides: list(int);
       padding: string {SAME, VALID})",
     .shape = FusedResizePadConv2dShape},
    {.names = "FusedPadConv2D",
     .signature = R"((input: T, paddings: int32, filter: T) -> (output: T)
       | T: {half, float, double}; mode: string {REFLECT, SYMMETRIC};
       strides: list(int); padding: string {SAME, VALID})",
     .shape = FusedPadConv2dShape},
    {.names = "_FusedConv2D",
     .signature = R"((input: T, filter: T, args: num_args*T) -> (output: T)
       | T: {half, float, double}; num_args: int >= 0; strides: list(int);
       padding: string {SAME, VALID, EXPLICIT};
       explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       dilations: list(int) = [1, 1, 1, 1]; use_cudnn_on_gpu: bool = true;
       fused_ops: list(string) = []; epsilon: float = 0.0001;
       leakyrelu_alpha: float = 0.2)",
     .shape = Conv2dShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "_FusedDepthwiseConv2dNative",
     .signature = R"((input: T, filter: T, args: num_args*T)
       -> (output: T)
       | T: {half, float, double}; num_args: int >= 0; strides: list(int);
       padding: string {SAME, VALID, EXPLICIT};
       explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC;
       dilations: list(int) = [1, 1, 1, 1]; fused_ops: list(string) = [];
       epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2)",
     .shape = DepthwiseConv2dShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "_FusedMatMul",
     .signature = R"((a: T, b: T, args: num_args*T) -> (product: T)
       | T: {half, float, double}; num_args: int >= 0; transpose_a: bool = false;
       transpose_b: bool = false; fused_ops: list(string) = [];
       epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2)",
     .shape = MatMulShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Conv3D",
     .signature = R"((input: T, filter: T) -> (output: T)
       | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
       data_format: string {NDHWC, NCDHW} = NDHWC;
       late dilations: list(int) = [1, 1, 1, 1, 1])",
     .shape = Conv3dShape},
    {.names = "Conv3DBackpropInputV2",
     .signature = R"((input_sizes: Tshape, filter: T, out_backprop: T)
       -> (output: T)
       | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
       data_format: string {NDHWC, NCDHW} = NDHWC;
       late dilations: list(int) = [1, 1, 1, 1, 1];
       late Tshape: {index} = int32)",
     .shape = Conv3dBackpropInputShape},
    {.names = "Conv3DBackpropFilterV2",
     .signature = R"((input: T, filter_sizes: int32, out_backprop: T)
       -> (output: T)
       | T: {floating}; strides: list(int) >= 5; padding: string {SAME, VALID};
       data_format: string {NDHWC, NCDHW} = NDHWC;
       late dilations: list(int) = [1, 1, 1, 1, 1])",
     .shape = Conv3dBackpropFilterShape},
    {.names = "Dilation2D",
     .signature = R"((input: T, filter: T) -> (output: T)
       | T: {real}; strides: list(int) >= 4; rates: list(int) >= 4;
       padding: string {SAME, VALID})",
     .shape = Dilation2dShape},
    {.names = "BiasAdd",
     .signature = R"((value: T, bias: T) -> (output: T)
       | T: {number}; data_format: string {NHWC, NCHW} = NHWC)",
     .shape = BiasAddShape,
     .role = OpRole::kBiasAdd,
     .quantized = &kQuantizedBiasAddForm},
    {.names = "BiasAddV1",
     .signature = "(value: T, bias: T) -> (output: T) | T: {number}",
     .shape = BiasAddShape,
     .role = OpRole::kBiasAdd},
    {.names = "BiasAddGrad",
     .signature = R"((out_backprop: T) -> (output: T)
       | T: {number}; data_format: string {NHWC, NCHW} = NHWC)",
     .shape = BiasAddGradShape},
    {.names = "DataFormatVecPermute, DataFormatDimMap",
     .signature = R"((x: T) -> (y: T)
       | T: {index} = int32; src_format: string = NHWC; dst_format: string = NCHW)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},

    // Pooling.
    {.names = "AvgPool",
     .signature = R"((value: T) -> (output: T)
       | ksize: list(int) >= 4; strides: list(int) >= 4;
       padding: string {SAME, VALID};
       data_format: string {NHWC, NCHW} = NHWC; T: {floating})",
     .shape = Pool2dShape,
     .demand = InputDemand::kImages,
     .role = OpRole::kAveragePool,
     .flow = ValueFlow::kRangePreserving,
     .quantized = &kQuantizedAvgPoolForm},
    {.names = "AvgPoolGrad",
     .signature = R"((orig_input_shape: int32, grad: T) -> (output: T)
       | ksize: list(int) >= 4; strides: list(int) >= 4;
       padding: string {SAME, VALID};
       data_format: string {NHWC, NCHW} = NHWC; T: {floating})",
     .shape = AvgPoolGradShape},
    {.names = "MaxPool",
     .signature = R"((input: T) -> (output: T)
       | T: {real, qint8} = float; ksize: list(int) >= 4; strides: list(int) >= 4;
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC)",
     .shape = Pool2dShape,
     .demand = InputDemand::kImages,
     .role = OpRole::kMaxPool,
     .flow = ValueFlow::kRangePreserving,
     .quantized = &kQuantizedMaxPoolForm},
    {.names = "FractionalMaxPool, FractionalAvgPool",
     .signature = R"((value: T)
       -> (output: T, row_pooling_sequence: int64, col_pooling_sequence: int64)
       | pooling_ratio: list(float) >= 4; pseudo_random: bool = false;
       overlapping: bool = false; deterministic: bool = false; seed: int = 0;
       seed2: int = 0; T: {float, double, int32, int64})",
     .shape = FractionalPoolShape,
     .flow = ValueFlow::kRangePreserving},
    {.names = "MaxPoolV2",
     .signature = R"((input: T, ksize: int32, strides: int32) -> (output: T)
       | T: {real, qint8} = float; padding: string {SAME, VALID};
       data_format: string {NHWC, NCHW, NCHW_VECT_C} = NHWC)",
     .shape = MaxPoolV2Shape,
     .flow = ValueFlow::kRangePreserving},
    {.names = "MaxPoolGrad",
     .signature = R"((orig_input: T, orig_output: T, grad: T) -> (output: T)
       | ksize: list(int) >= 4; strides: list(int) >= 4;
       padding: string {SAME, VALID, EXPLICIT};
       late explicit_paddings: list(int) = [];
       data_format: string {NHWC, NCHW} = NHWC; T: {real} = float)",
     .shape = UnchangedShape},
    {.names = "MaxPoolWithArgmax",
     .signature = R"((input: T) -> (output: T, argmax: Targmax)
       | ksize: list(int) >= 4; strides: list(int) >= 4; Targmax: {index} = int64;
       padding: string {SAME, VALID}; late include_batch_in_index: bool = false;
       T: {real})",
     .shape = MaxPoolWithArgmaxShape,
     .flow = ValueFlow::kRangePreserving},
    {.names = "AvgPool3D",
     .signature = R"((input: T) -> (output: T)
       | ksize: list(int) >= 5; strides: list(int) >= 5;
       padding: string {SAME, VALID};
       data_format: string {NDHWC, NCDHW} = NDHWC; T: {floating})",
     .shape = Pool3dShape,
     .flow = ValueFlow::kRangePreserving},
    {.names = "MaxPool3D",
     .signature = R"((input: T) -> (output: T)
       | ksize: list(int) >= 5; strides: list(int) >= 5;
       padding: string {SAME, VALID};
       data_format: string {NDHWC, NCDHW} = NDHWC; T: {half, bfloat16, float})",
     .shape = Pool3dShape,
     .flow = ValueFlow::kRangePreserving},

    // Normalization.
    {.names = "BatchNormWithGlobalNormalization",
     .signature = R"((t: T, m: T, v: T, beta: T, gamma: T)
       -> (result: T)
       | T: {number}; variance_epsilon: float; scale_after_normalization: bool)",
     .shape = GlobalBatchNormShape,
     .role = OpRole::kGlobalBatchNorm},
    {.names = "FusedBatchNorm",
     .signature = R"((x: T, scale: T, offset: T, mean: T, variance: T)
       -> (y: T, batch_mean: T, batch_variance: T, reserve_space_1: T,
       reserve_space_2: T)
       | T: {float}; epsilon: float = 0.0001;
       late exponential_avg_factor: float = 1;
       data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true)",
     .shape = FusedBatchNormShape,
     .demand = InputDemand::kImages,
     .role = OpRole::kBatchNorm},
    {.names = "FusedBatchNormV2",
     .signature = R"((x: T, scale: U, offset: U, mean: U, variance: U)
       -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U,
       reserve_space_2: U)
       | T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001;
       late exponential_avg_factor: float = 1;
       data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true)",
     .shape = FusedBatchNormShape,
     .role = OpRole::kBatchNorm,
     .origin = Origin::kLaterTensorFlow},
    {.names = "FusedBatchNormV3",
     .signature = R"((x: T, scale: U, offset: U, mean: U, variance: U)
       -> (y: T, batch_mean: U, batch_variance: U, reserve_space_1: U,
       reserve_space_2: U, reserve_space_3: U)
       | T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 0.0001;
       late exponential_avg_factor: float = 1;
       data_format: string {NHWC, NCHW, NDHWC, NCDHW} = NHWC;
       is_training: bool = true)",
     .shape = FusedBatchNormShape,
     .role = OpRole::kBatchNorm,
     .origin = Origin::kLaterTensorFlow},
    {.names = "FusedBatchNormGrad",
     .signature = R"((
       y_backprop: T, x: T, scale: T, reserve_space_1: T, reserve_space_2: T)
       -> (x_backprop: T, scale_backprop: T, offset_backprop: T,
       reserve_space_3: T, reserve_space_4: T)
       | T: {float}; epsilon: float = 0.0001;
       data_format: string {NHWC, NCHW} = NHWC; is_training: bool = true)",
     .shape = FusedBatchNormGradShape},
    {.names = "LRN",
     .signature = R"((input: T) -> (output: T)
       | depth_radius: int = 5; bias: float = 1; alpha: float = 1;
       beta: float = 0.5; T: {half, bfloat16, float} = float)",
     .shape = Rank4Unchanged,
     .demand = InputDemand::kImages},
    {.names = "LRNGrad",
     .signature =
         R"((input_grads: T, input_image: T, output_image: T) -> (output: T)
       | depth_radius: int = 5; bias: float = 1; alpha: float = 1;
       beta: float = 0.5; T: {half, bfloat16, float} = float)",
     .shape = Rank4Unchanged},

    // Activations.
    {.names = "Relu",
     .signature = "(features: T) -> (activations: T) | T: {real, qint8}",
     .shape = UnchangedShape,
     .demand = InputDemand::kAsOutput,
     .flow = ValueFlow::kRangePreserving,
     .activation = Activation::kRelu,
     .quantized = &kQuantizedReluForm},
    {.names = "Relu6",
     .signature = "(features: T) -> (activations: T) | T: {real}",
     .shape = UnchangedShape,
     .flow = ValueFlow::kRangePreserving,
     .activation = Activation::kRelu6,
     .quantized = &kQuantizedRelu6Form},
    {.names = "ReluGrad, Relu6Grad",
     .signature = "(gradients: T, features: T) -> (backprops: T) | T: {real}",
     .shape = FirstTwoAlike},
    {.names = "LeakyRelu",
     .signature = R"((features: T) -> (activations: T)
       | alpha: float = 0.2; T: {floating} = float)",
     .shape = UnchangedShape,
     .origin = Origin::kLaterTensorFlow},
    {.names = "LeakyReluGrad",
     .signature = R"((gradients: T, features: T) -> (backprops: T)
       | alpha: float = 0.2; T: {floating} = float)",
     .shape = FirstTwoAlike,
     .origin = Origin::kLaterTensorFlow},
    {.names = "Elu, Selu, Softplus, Softsign",
     .signature = "(features: T) -> (activations: T) | T: {floating}",
     .shape = UnchangedShape},
    // Where scales are given, features come from 8-bit values of input_scale
    // and activations are multiples of output_scale, computed in 16 bits as
    // TensorFlow Lite does it.
    {.names = "HardSwish",
     .signature = R"((features: T) -> (activations: T) | T: {floating};
       input_scale: float = 0; output_scale: float = 0)",
     .shape = UnchangedShape,
     .origin = Origin::kOtherFormats},
    {.names = "EluGrad, SeluGrad",
     .signature =
         "(gradients: T, outputs: T) -> (backprops: T) | T: {floating}",
     .shape = FirstTwoAlike},
    {.names = "SoftplusGrad, SoftsignGrad",
     .signature =
         "(gradients: T, features: T) -> (backprops: T) | T: {floating}",
     .shape = FirstTwoAlike},
    {.names = "Softmax",
     .signature = "(logits: T) -> (softmax: T) | T: {floating}",
     .shape = AtLeastVector},
    {.names = "LogSoftmax",
     .signature = "(logits: T) -> (logsoftmax: T) | T: {floating}",
     .shape = AtLeastVector},

    // Losses and rankings.
    {.names = "L2Loss",
     .signature = "(t: T) -> (output: T) | T: {floating}",
     .shape = ScalarOutputs},
    {.names = "SoftmaxCrossEntropyWithLogits",
     .signature = R"((features: T, labels: T)
       -> (loss: T, backprop: T) | T: {floating})",
     .shape = SoftmaxLossShape},
    {.names = "SparseSoftmaxCrossEntropyWithLogits",
     .signature = R"((features: T, labels: Tlabels)
       -> (loss: T, backprop: T) | T: {floating}; Tlabels: {index} = int64)",
     .shape = SparseSoftmaxLossShape},
    {.names = "InTopK",
     .signature = R"((predictions: float, targets: T) -> (precision: bool)
       | k: int; T: {index} = int32)",
     .shape = InTopKShape},
    {.names = "InTopKV2",
     .signature = R"((predictions: float, targets: T, k: T) -> (precision: bool)
       | T: {index} = int32)",
     .shape = InTopKShape},
    {.names = "TopK",
     .signature = R"((input: T) -> (values: T, indices: int32)
       | k: int >= 0; sorted: bool = true; T: {real})",
     .shape = TopKShape},
    {.names = "TopKV2",
     .signature = R"((input: T, k: Tk) -> (values: T, indices: index_type)
       | sorted: bool = true; T: {real}; late Tk: {int16, int32, int64} = int32;
       late index_type: {int16, uint16, int32, int64} = int32)",
     .shape = TopKShape},
    {.names = "NthElement",
     .signature = R"((input: T, n: int32) -> (values: T)
       | reverse: bool = false; T: {real})",
     .shape = NthElementShape},
    {.names = "CTCLoss", .signature = R"((
       inputs: T, labels_indices: int64, labels_values: int32,
       sequence_length: int32) -> (loss: T, gradient: T)
       | preprocess_collapse_repeated: bool = false;
       ctc_merge_repeated: bool = true;
       ignore_longer_outputs_than_inputs: bool = false;
       late T: {float, double} = float)"},
    {.names = "CTCGreedyDecoder",
     .signature = R"((inputs: T, sequence_length: int32)
       -> (decoded_indices: int64, decoded_values: int64, decoded_shape: int64,
       log_probability: T)
       | merge_repeated: bool = false; late blank_index: int = -1;
       late T: {float, double} = float)"},
    {.names = "CTCBeamSearchDecoder",
     .signature = R"((inputs: T, sequence_length: int32)
       -> (decoded_indices: top_paths*int64, decoded_values: top_paths*int64,
       decoded_shape: top_paths*int64, log_probability: T)
       | beam_width: int >= 1; top_paths: int >= 1; merge_repeated: bool = true;
       late T: {float, double} = float)"},

    // Recurrent cells.
    {.names = "GRUBlockCell",
     .signature = R"((x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T)
       -> (r: T, u: T, c: T, h: T) | T: {float})",
     .shape = GruBlockCellShape},
    {.names = "LSTMBlockCell",
     .signature = R"((
       x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T)
       -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
       | forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false;
       T: {half, float})",
     .shape = LstmBlockCellShape},
    {.names = "BlockLSTM",
     .signature = R"((
       seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T,
       wco: T, b: T) -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
       | forget_bias: float = 1; cell_clip: float = 3; use_peephole: bool = false;
       T: {half, float})",
     .shape = BlockLstmShape},
    {.names = "BlockLSTMV2",
     .signature = R"((
       seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T,
       wco: T, b: T) -> (i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)
       | cell_clip: float = 0; use_peephole: bool = false; T: {half, float})",
     .shape = BlockLstmShape,
     .origin = Origin::kLaterTensorFlow},

    // Steps of optimizers; found in graphs saved while training.
    {.names = "ApplyGradientDescent",
     .signature = R"((var: &T, alpha: T, delta: T) -> (out: &T)
       | T: {number}; use_locking: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyMomentum",
     .signature =
         R"((var: &T, accum: &T, lr: T, grad: T, momentum: T) -> (out: &T)
       | T: {number}; use_locking: bool = false; use_nesterov: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyAdam",
     .signature = R"((
       var: &T, m: &T, v: &T, beta1_power: T, beta2_power: T, lr: T, beta1: T,
       beta2: T, epsilon: T, grad: T) -> (out: &T)
       | T: {number}; use_locking: bool = false; use_nesterov: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyAdagrad",
     .signature = R"((var: &T, accum: &T, lr: T, grad: T) -> (out: &T)
       | T: {number}; use_locking: bool = false; late update_slots: bool = true)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyAdadelta",
     .signature = R"((
       var: &T, accum: &T, accum_update: &T, lr: T, rho: T, epsilon: T, grad: T)
       -> (out: &T) | T: {number}; use_locking: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyRMSProp",
     .signature = R"((
       var: &T, ms: &T, mom: &T, lr: T, rho: T, momentum: T, epsilon: T, grad: T)
       -> (out: &T) | T: {number}; use_locking: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ApplyFtrl",
     .signature = R"((
       var: &T, accum: &T, linear: &T, grad: T, lr: T, l1: T, l2: T, lr_power: T)
       -> (out: &T)
       | T: {number}; use_locking: bool = false;
       late multiply_linear_by_lr: bool = false)",
     .shape = ApplyShape,
     .is_bookkeeping = true},
    {.names = "ResourceApplyGradientDescent",
     .signature = R"((var: resource, alpha: T, delta: T) stateful
       | T: {number}; use_locking: bool = false)",
     .is_bookkeeping = true},
    {.names = "ResourceApplyMomentum",
     .signature = R"((
       var: resource, accum: resource, lr: T, grad: T, momentum: T) stateful
       | T: {number}; use_locking: bool = false; use_nesterov: bool = false)",
     .is_bookkeeping = true},
    {.names = "ResourceApplyKerasMomentum",
     .signature = R"((
       var: resource, accum: resource, lr: T, grad: T, momentum: T) stateful
       | T: {number}; use_locking: bool = false; use_nesterov: bool = false)",
     .is_bookkeeping = true,
     .origin = Origin::kLaterTensorFlow},
    {.names = "ResourceApplyAdam",
     .signature = R"((
       var: resource, m: resource, v: resource, beta1_power: T, beta2_power: T,
       lr: T, beta1: T, beta2: T, epsilon: T, grad: T) stateful
       | T: {number}; use_locking: bool = false; use_nesterov: bool = false)",
     .is_bookkeeping = true},
    {.names = "ResourceApplyAdagrad",
     .signature = R"((var: resource, accum: resource, lr: T, grad: T) stateful
       | T: {number}; use_locking: bool = false; late update_slots: bool = true)",
     .is_bookkeeping = true},
    {.names = "ResourceApplyRMSProp",
     .signature = R"((
       var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T,
       epsilon: T, grad: T) stateful
       | T: {number}; use_locking: bool = false)",
     .is_bookkeeping = true},
};

}  // namespace

absl::Span<const OpRow> NnOps() { return kRows; }

}  // namespace optfarm::graph
