// Fills the option tables.

#include "engine/formats/tflite/raising/operator_options.h"

#include <tflite/schema_generated.h>

#include <utility>

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;
using tflite::BuiltinOptionsUnion;

tflite::ActivationFunctionType ActivationType(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return tflite::ActivationFunctionType::NONE;
    case Activation::kRelu:
      return tflite::ActivationFunctionType::RELU;
    case Activation::kReluN1To1:
      return tflite::ActivationFunctionType::RELU_N1_TO_1;
    case Activation::kRelu6:
      return tflite::ActivationFunctionType::RELU6;
  }
  return tflite::ActivationFunctionType::NONE;
}

tflite::Padding PaddingType(const OperatorOptions& from) {
  return from.same_padding ? tflite::Padding::SAME : tflite::Padding::VALID;
}

// Options whose only content is a fused activation.
template <typename Options>
void SetActivation(const OperatorOptions& from, BuiltinOptionsUnion* to) {
  Options options;
  options.fused_activation_function = ActivationType(from.activation);
  to->Set(std::move(options));
}

template <typename Options>
void SetNothing(BuiltinOptionsUnion* to) {
  to->Set(Options());
}

void SetPool(const OperatorOptions& from, BuiltinOptionsUnion* to) {
  tflite::Pool2DOptionsT options;
  options.padding = PaddingType(from);
  options.stride_h = from.stride_h;
  options.stride_w = from.stride_w;
  options.filter_height = from.window_h;
  options.filter_width = from.window_w;
  options.fused_activation_function = ActivationType(from.activation);
  to->Set(std::move(options));
}

// Layers with weights. False for another operator; so are those below.
bool SetLayer(BuiltinOperator op, const OperatorOptions& from,
              BuiltinOptionsUnion* to) {
  switch (op) {
    case BuiltinOperator::CONV_2D: {
      tflite::Conv2DOptionsT options;
      options.padding = PaddingType(from);
      options.stride_h = from.stride_h;
      options.stride_w = from.stride_w;
      options.dilation_h_factor = from.dilation_h;
      options.dilation_w_factor = from.dilation_w;
      options.fused_activation_function = ActivationType(from.activation);
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::DEPTHWISE_CONV_2D: {
      tflite::DepthwiseConv2DOptionsT options;
      options.padding = PaddingType(from);
      options.stride_h = from.stride_h;
      options.stride_w = from.stride_w;
      options.depth_multiplier = from.depth_multiplier;
      options.dilation_h_factor = from.dilation_h;
      options.dilation_w_factor = from.dilation_w;
      options.fused_activation_function = ActivationType(from.activation);
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::TRANSPOSE_CONV: {
      tflite::TransposeConvOptionsT options;
      options.padding = PaddingType(from);
      options.stride_h = from.stride_h;
      options.stride_w = from.stride_w;
      options.fused_activation_function = ActivationType(from.activation);
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::FULLY_CONNECTED: {
      tflite::FullyConnectedOptionsT options;
      options.keep_num_dims = from.keep_dims;
      options.asymmetric_quantize_inputs = from.asymmetric_inputs;
      options.fused_activation_function = ActivationType(from.activation);
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::BATCH_MATMUL: {
      tflite::BatchMatMulOptionsT options;
      options.adj_x = from.adjoint_x;
      options.adj_y = from.adjoint_y;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM: {
      tflite::UnidirectionalSequenceLSTMOptionsT options;
      options.fused_activation_function = tflite::ActivationFunctionType::TANH;
      options.time_major = from.time_major;
      to->Set(std::move(options));
      return true;
    }
    default:
      return false;
  }
}

bool SetNeural(BuiltinOperator op, const OperatorOptions& from,
               BuiltinOptionsUnion* to) {
  switch (op) {
    case BuiltinOperator::AVERAGE_POOL_2D:
    case BuiltinOperator::MAX_POOL_2D:
    case BuiltinOperator::L2_POOL_2D:
      SetPool(from, to);
      return true;
    case BuiltinOperator::ADD:
      SetActivation<tflite::AddOptionsT>(from, to);
      to->AsAddOptions()->pot_scale_int16 = false;
      return true;
    case BuiltinOperator::SUB:
      SetActivation<tflite::SubOptionsT>(from, to);
      to->AsSubOptions()->pot_scale_int16 = false;
      return true;
    case BuiltinOperator::MUL:
      SetActivation<tflite::MulOptionsT>(from, to);
      return true;
    case BuiltinOperator::DIV:
      SetActivation<tflite::DivOptionsT>(from, to);
      return true;
    case BuiltinOperator::L2_NORMALIZATION:
      SetActivation<tflite::L2NormOptionsT>(from, to);
      return true;
    case BuiltinOperator::SOFTMAX: {
      tflite::SoftmaxOptionsT options;
      options.beta = from.beta;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::LEAKY_RELU: {
      tflite::LeakyReluOptionsT options;
      options.alpha = from.alpha;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::GELU: {
      tflite::GeluOptionsT options;
      options.approximate = from.approximate;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION: {
      tflite::LocalResponseNormalizationOptionsT options;
      options.radius = from.radius;
      options.bias = from.bias;
      options.alpha = from.alpha;
      options.beta = from.beta;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::RESIZE_BILINEAR: {
      tflite::ResizeBilinearOptionsT options;
      options.align_corners = from.align_corners;
      options.half_pixel_centers = from.half_pixel_centers;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::RESIZE_NEAREST_NEIGHBOR: {
      tflite::ResizeNearestNeighborOptionsT options;
      options.align_corners = from.align_corners;
      options.half_pixel_centers = from.half_pixel_centers;
      to->Set(std::move(options));
      return true;
    }
    default:
      return false;
  }
}

bool SetArrangement(BuiltinOperator op, const OperatorOptions& from,
                    BuiltinOptionsUnion* to) {
  switch (op) {
    case BuiltinOperator::CONCATENATION: {
      tflite::ConcatenationOptionsT options;
      options.axis = from.axis;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::RESHAPE: {
      tflite::ReshapeOptionsT options;
      options.new_shape = from.dims;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::SQUEEZE: {
      tflite::SqueezeOptionsT options;
      options.squeeze_dims = from.dims;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::PACK: {
      tflite::PackOptionsT options;
      options.values_count = from.count;
      options.axis = from.axis;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::UNPACK: {
      tflite::UnpackOptionsT options;
      options.num = from.count;
      options.axis = from.axis;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::SPLIT: {
      tflite::SplitOptionsT options;
      options.num_splits = from.count;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::SPLIT_V: {
      tflite::SplitVOptionsT options;
      options.num_splits = from.count;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::GATHER: {
      tflite::GatherOptionsT options;
      options.axis = from.axis;
      options.batch_dims = from.batch_dims;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::STRIDED_SLICE: {
      tflite::StridedSliceOptionsT options;
      options.begin_mask = from.begin_mask;
      options.end_mask = from.end_mask;
      options.shrink_axis_mask = from.shrink_axis_mask;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::SPACE_TO_DEPTH: {
      tflite::SpaceToDepthOptionsT options;
      options.block_size = from.block_size;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::DEPTH_TO_SPACE: {
      tflite::DepthToSpaceOptionsT options;
      options.block_size = from.block_size;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::MIRROR_PAD: {
      tflite::MirrorPadOptionsT options;
      options.mode = from.symmetric ? tflite::MirrorPadMode::SYMMETRIC
                                    : tflite::MirrorPadMode::REFLECT;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::ONE_HOT: {
      tflite::OneHotOptionsT options;
      options.axis = from.axis;
      to->Set(std::move(options));
      return true;
    }
    default:
      return false;
  }
}

// Operators that configure types or a few flags.
bool SetSmall(const ModelDraft& draft, const DraftOperator& op,
              BuiltinOptionsUnion* to) {
  const OperatorOptions& from = op.options;
  switch (op.op) {
    case BuiltinOperator::MEAN:
    case BuiltinOperator::SUM:
    case BuiltinOperator::REDUCE_MAX:
    case BuiltinOperator::REDUCE_MIN:
    case BuiltinOperator::REDUCE_PROD:
    case BuiltinOperator::REDUCE_ANY:
    case BuiltinOperator::REDUCE_ALL: {
      tflite::ReducerOptionsT options;
      options.keep_dims = from.keep_dims;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::CAST: {
      tflite::CastOptionsT options;
      options.in_data_type = draft.tensor(op.inputs[0]).type;
      options.out_data_type = draft.tensor(op.outputs[0]).type;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::SHAPE: {
      tflite::ShapeOptionsT options;
      options.out_type = draft.tensor(op.outputs[0]).type;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::ARG_MAX: {
      tflite::ArgMaxOptionsT options;
      options.output_type = draft.tensor(op.outputs[0]).type;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::ARG_MIN: {
      tflite::ArgMinOptionsT options;
      options.output_type = draft.tensor(op.outputs[0]).type;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::FAKE_QUANT: {
      tflite::FakeQuantOptionsT options;
      options.min = from.low;
      options.max = from.high;
      options.num_bits = from.count;
      options.narrow_range = from.narrow_range;
      to->Set(std::move(options));
      return true;
    }
    case BuiltinOperator::CUMSUM: {
      tflite::CumsumOptionsT options;
      options.exclusive = from.exclusive;
      options.reverse = from.reverse;
      to->Set(std::move(options));
      return true;
    }
    default:
      return false;
  }
}

// Tables without fields; readers that look for the right kind find it.
void SetEmpty(BuiltinOperator op, BuiltinOptionsUnion* to) {
  switch (op) {
    case BuiltinOperator::PAD:
      return SetNothing<tflite::PadOptionsT>(to);
    case BuiltinOperator::PADV2:
      return SetNothing<tflite::PadV2OptionsT>(to);
    case BuiltinOperator::TRANSPOSE:
      return SetNothing<tflite::TransposeOptionsT>(to);
    case BuiltinOperator::QUANTIZE:
      return SetNothing<tflite::QuantizeOptionsT>(to);
    case BuiltinOperator::DEQUANTIZE:
      return SetNothing<tflite::DequantizeOptionsT>(to);
    case BuiltinOperator::MAXIMUM:
    case BuiltinOperator::MINIMUM:
      return SetNothing<tflite::MaximumMinimumOptionsT>(to);
    case BuiltinOperator::EXPAND_DIMS:
      return SetNothing<tflite::ExpandDimsOptionsT>(to);
    case BuiltinOperator::SLICE:
      return SetNothing<tflite::SliceOptionsT>(to);
    case BuiltinOperator::TILE:
      return SetNothing<tflite::TileOptionsT>(to);
    default:
      return;
  }
}

}  // namespace

void SetOperatorOptions(const ModelDraft& draft, const DraftOperator& op,
                        BuiltinOptionsUnion* options) {
  if (SetLayer(op.op, op.options, options) ||
      SetNeural(op.op, op.options, options) ||
      SetArrangement(op.op, op.options, options) ||
      SetSmall(draft, op, options)) {
    return;
  }
  SetEmpty(op.op, options);
}

}  // namespace optfarm::formats::tflite_raising
