// The history of operators that matters to files: which version came with which
// types and features, and with which release.

#include "engine/formats/tflite/raising/operator_versions.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;
using tflite::TensorType;

// A release of TensorFlow; runtimes count with it.
struct Release {
  int major = 1;
  int minor = 5;

  friend auto operator<=>(const Release&, const Release&) = default;
};

// Version and first release of an operator on plain tensors, on int8 and on
// int16 quantized values. A version of 0: as on plain tensors.
struct History {
  BuiltinOperator op;
  Release since;
  int int8_version = 0;
  int int16_version = 0;
};

constexpr Release kInt8Release = {1, 14};
constexpr Release kInt16Release = {2, 3};

// Operators that are in no row have version 1 and are as old as the format.
constexpr std::array kHistories = {
    History{BuiltinOperator::ABS, {1, 13}, 2, 2},
    History{BuiltinOperator::ADD, {}, 2, 3},
    History{BuiltinOperator::ADD_N, {1, 14}},
    History{BuiltinOperator::ARG_MAX, {1, 9}, 2},
    History{BuiltinOperator::ARG_MIN, {1, 9}, 2},
    History{BuiltinOperator::AVERAGE_POOL_2D, {}, 2, 3},
    History{BuiltinOperator::BATCH_MATMUL, {2, 3}, 2, 3},
    History{BuiltinOperator::BATCH_TO_SPACE_ND, {1, 6}, 2},
    History{BuiltinOperator::BROADCAST_TO, {2, 5}},
    History{BuiltinOperator::CAST, {1, 5}},
    History{BuiltinOperator::CEIL, {1, 14}},
    History{BuiltinOperator::CONCATENATION, {}, 2, 3},
    History{BuiltinOperator::CONV_2D, {}, 3, 4},
    History{BuiltinOperator::COS, {1, 14}},
    History{BuiltinOperator::CUMSUM, {2, 4}},
    History{BuiltinOperator::DEPTHWISE_CONV_2D, {}, 3, 5},
    History{BuiltinOperator::DEPTH_TO_SPACE, {2, 1}, 2},
    History{BuiltinOperator::DEQUANTIZE, {1, 13}, 2, 3},
    History{BuiltinOperator::DIV, {1, 6}},
    History{BuiltinOperator::ELU, {1, 14}},
    History{BuiltinOperator::EQUAL, {1, 14}, 2},
    History{BuiltinOperator::EXP, {1, 7}, 2},
    History{BuiltinOperator::EXPAND_DIMS, {1, 10}},
    History{BuiltinOperator::FILL, {1, 13}},
    History{BuiltinOperator::FLOOR_DIV, {1, 13}},
    History{BuiltinOperator::FLOOR_MOD, {1, 13}},
    History{BuiltinOperator::FULLY_CONNECTED, {}, 4, 7},
    History{BuiltinOperator::GATHER, {1, 6}, 2, 4},
    History{BuiltinOperator::GATHER_ND, {1, 14}},
    History{BuiltinOperator::GELU, {2, 9}, 2},
    History{BuiltinOperator::GREATER, {1, 14}, 2},
    History{BuiltinOperator::GREATER_EQUAL, {1, 14}, 2},
    History{BuiltinOperator::HARD_SWISH, {1, 15}},
    History{BuiltinOperator::L2_NORMALIZATION, {}, 2},
    History{BuiltinOperator::LEAKY_RELU, {1, 13}, 0, 2},
    History{BuiltinOperator::LESS, {1, 14}, 2},
    History{BuiltinOperator::LESS_EQUAL, {1, 14}, 2},
    History{BuiltinOperator::LOG, {1, 14}},
    History{BuiltinOperator::LOGISTIC, {}, 2, 3},
    History{BuiltinOperator::LOG_SOFTMAX, {}, 2},
    History{BuiltinOperator::MAXIMUM, {1, 14}, 2, 3},
    History{BuiltinOperator::MAX_POOL_2D, {}, 2, 3},
    History{BuiltinOperator::MEAN, {1, 6}, 2, 3},
    History{BuiltinOperator::MINIMUM, {1, 14}, 2, 3},
    History{BuiltinOperator::MIRROR_PAD, {1, 13}, 2},
    History{BuiltinOperator::MUL, {}, 2, 4},
    History{BuiltinOperator::NEG, {1, 9}},
    History{BuiltinOperator::NOT_EQUAL, {1, 14}, 2},
    History{BuiltinOperator::ONE_HOT, {1, 11}},
    History{BuiltinOperator::PACK, {1, 11}, 2, 3},
    History{BuiltinOperator::PAD, {}, 2, 3},
    History{BuiltinOperator::PADV2, {1, 9}, 2, 3},
    History{BuiltinOperator::POW, {1, 10}},
    History{BuiltinOperator::PRELU, {1, 8}},
    History{BuiltinOperator::QUANTIZE, {1, 14}, 1, 2},
    History{BuiltinOperator::RANGE, {1, 13}},
    History{BuiltinOperator::REDUCE_MAX, {1, 11}, 2, 3},
    History{BuiltinOperator::REDUCE_MIN, {1, 11}, 2, 3},
    History{BuiltinOperator::RELU, {}, 2, 3},
    History{BuiltinOperator::RELU6, {}, 2, 3},
    History{BuiltinOperator::RELU_N1_TO_1, {}, 2},
    History{BuiltinOperator::RESIZE_BILINEAR, {1, 7}, 2, 4},
    History{BuiltinOperator::RESIZE_NEAREST_NEIGHBOR, {1, 13}, 2, 4},
    History{BuiltinOperator::REVERSE_V2, {1, 14}},
    History{BuiltinOperator::ROUND, {1, 14}},
    History{BuiltinOperator::RSQRT, {1, 10}, 2},
    History{BuiltinOperator::SCATTER_ND, {2, 1}},
    History{BuiltinOperator::SELECT, {1, 14}, 2},
    History{BuiltinOperator::SELECT_V2, {2, 2}},
    History{BuiltinOperator::SHAPE, {1, 10}},
    History{BuiltinOperator::SIGN, {2, 12}},
    History{BuiltinOperator::SIN, {1, 9}},
    History{BuiltinOperator::SLICE, {1, 14}, 2, 4},
    History{BuiltinOperator::SOFTMAX, {}, 2, 3},
    History{BuiltinOperator::SPACE_TO_BATCH_ND, {1, 6}, 2},
    History{BuiltinOperator::SPACE_TO_DEPTH, {}, 2},
    History{BuiltinOperator::SPLIT, {1, 5}, 2, 4},
    History{BuiltinOperator::SPLIT_V, {1, 13}, 2},
    History{BuiltinOperator::SQRT, {1, 10}},
    History{BuiltinOperator::SQUARE, {1, 12}},
    History{BuiltinOperator::SQUARED_DIFFERENCE, {1, 13}, 2},
    History{BuiltinOperator::SQUEEZE, {1, 6}},
    History{BuiltinOperator::STRIDED_SLICE, {1, 6}, 2, 4},
    History{BuiltinOperator::SUB, {1, 6}, 2, 5},
    History{BuiltinOperator::SUM, {1, 10}, 2},
    History{BuiltinOperator::TANH, {}, 2, 3},
    History{BuiltinOperator::TILE, {1, 10}},
    History{BuiltinOperator::TOPK_V2, {1, 7}, 2},
    History{BuiltinOperator::TRANSPOSE, {1, 6}, 2, 4},
    History{BuiltinOperator::TRANSPOSE_CONV, {1, 9}, 2, 3},
    History{BuiltinOperator::UNPACK, {1, 13}, 2, 4},
    History{BuiltinOperator::WHERE, {1, 14}},
};

struct Need {
  int version = 1;
  Release since;
};

// What is looked at of an operator's tensors.
struct Types {
  TensorType input{};
  TensorType weights{};
  TensorType output{};
  bool has_channel_scales = false;
};

TensorType TypeOf(const ModelDraft& draft, const std::vector<TensorId>& ids,
                  size_t i) {
  return i < ids.size() && ids[i] != kNoTensor ? draft.tensor(ids[i]).type
                                               : TensorType::FLOAT32;
}

Types TypesOf(const ModelDraft& draft, const DraftOperator& op) {
  Types types;
  // The operators below that have something else in front.
  const bool data_is_second = op.op == BuiltinOperator::SPLIT;
  const bool data_is_third = op.op == BuiltinOperator::TRANSPOSE_CONV;
  types.input =
      TypeOf(draft, op.inputs, data_is_third ? 2 : (data_is_second ? 1 : 0));
  types.weights = TypeOf(draft, op.inputs, 1);
  types.output = TypeOf(draft, op.outputs, 0);
  for (TensorId id : op.inputs) {
    if (id != kNoTensor && draft.tensor(id).quantization.scale.size() > 1) {
      types.has_channel_scales = true;
    }
  }
  return types;
}

bool IsGrouped(const ModelDraft& draft, const DraftOperator& op) {
  const graph::PartialShape& input = draft.tensor(op.inputs[0]).shape;
  const graph::PartialShape& filter = draft.tensor(op.inputs[1]).shape;
  return input.has_rank() && filter.has_rank() && input.rank() == 4 &&
         filter.rank() == 4 && input.dim(3) > 0 && filter.dim(3) > 0 &&
         input.dim(3) != filter.dim(3);
}

Need ConvolutionNeed(const ModelDraft& draft, const DraftOperator& op,
                     const Types& types) {
  const bool depthwise = op.op == BuiltinOperator::DEPTHWISE_CONV_2D;
  if (!depthwise && IsGrouped(draft, op)) return {6, {2, 9}};
  if (types.input == TensorType::INT16) return {depthwise ? 5 : 4, {2, 3}};
  if (types.input == TensorType::INT8) return {3, {1, 14}};
  if (types.weights == TensorType::INT8) {
    if (types.has_channel_scales) {
      return {depthwise ? 6 : 5, {2, depthwise ? 3 : 4}};
    }
    return depthwise ? Need{4, {2, 2}} : Need{2, {1, 14}};
  }
  if (depthwise && (op.options.dilation_h != 1 || op.options.dilation_w != 1)) {
    return {2, {1, 12}};
  }
  return {};
}

Need FullyConnectedNeed(const DraftOperator& op, const Types& types) {
  if (types.input == TensorType::INT16) return {7, {2, 3}};
  if (op.options.keep_dims) return {5, {2, 0}};
  if (types.input == TensorType::INT8) return {4, {1, 14}};
  if (types.weights == TensorType::INT8) {
    return op.options.asymmetric_inputs ? Need{9, {2, 3}} : Need{3, {1, 14}};
  }
  return {};
}

// Whether the operator's own features ask for more than its types do.
Need FeatureNeed(const ModelDraft& draft, const DraftOperator& op,
                 const Types& types) {
  switch (op.op) {
    case BuiltinOperator::CONV_2D:
    case BuiltinOperator::DEPTHWISE_CONV_2D:
      return ConvolutionNeed(draft, op, types);
    case BuiltinOperator::FULLY_CONNECTED:
      return FullyConnectedNeed(op, types);
    case BuiltinOperator::TRANSPOSE_CONV:
      if (op.options.activation != Activation::kNone) return {4, {2, 13}};
      return op.inputs.size() > 3 ? Need{3, {2, 3}} : Need{};
    case BuiltinOperator::DEQUANTIZE:
      if (types.input == TensorType::FLOAT16) return {3, {2, 1}};
      return types.has_channel_scales ? Need{5, {2, 7}} : Need{};
    case BuiltinOperator::RESIZE_BILINEAR:
    case BuiltinOperator::RESIZE_NEAREST_NEIGHBOR:
      return op.options.half_pixel_centers ||
                     (op.options.align_corners &&
                      op.op == BuiltinOperator::RESIZE_NEAREST_NEIGHBOR)
                 ? Need{3, {2, 3}}
                 : Need{};
    case BuiltinOperator::GATHER:
      return op.options.batch_dims != 0 ? Need{5, {2, 6}} : Need{};
    case BuiltinOperator::MUL:
    case BuiltinOperator::ADD:
    case BuiltinOperator::SUB:
      if (types.input != TensorType::INT64) return {};
      return op.op == BuiltinOperator::MUL ? Need{5, {2, 7}} : Need{4, {2, 6}};
    case BuiltinOperator::TRANSPOSE: {
      const graph::PartialShape& shape = draft.tensor(op.inputs[0]).shape;
      return shape.has_rank() && shape.rank() == 5  ? Need{5, {2, 5}}
             : shape.has_rank() && shape.rank() > 5 ? Need{6, {2, 12}}
                                                    : Need{};
    }
    default:
      return {};
  }
}

Need NeedOf(const ModelDraft& draft, const DraftOperator& op) {
  const Types types = TypesOf(draft, op);
  Need need = FeatureNeed(draft, op, types);
  const auto history =
      std::find_if(kHistories.begin(), kHistories.end(),
                   [&](const History& h) { return h.op == op.op; });
  if (history == kHistories.end()) return need;
  need.since = std::max(need.since, history->since);
  const bool has_products = op.op == BuiltinOperator::CONV_2D ||
                            op.op == BuiltinOperator::DEPTHWISE_CONV_2D ||
                            op.op == BuiltinOperator::FULLY_CONNECTED;
  if (has_products) return need;
  const auto raise = [&](int version, Release since) {
    if (version <= need.version) return;
    need.version = version;
    need.since = std::max(need.since, since);
  };
  if (types.input == TensorType::INT8) {
    raise(history->int8_version, kInt8Release);
  }
  if (types.input == TensorType::INT16 || types.output == TensorType::INT16) {
    raise(history->int16_version, kInt16Release);
  }
  return need;
}

}  // namespace

int OperatorVersion(const ModelDraft& draft, const DraftOperator& op) {
  return NeedOf(draft, op).version;
}

std::string MinimumRuntimeVersion(const ModelDraft& draft) {
  Release release;
  for (const DraftOperator& op : draft.operators) {
    release = std::max(release, NeedOf(draft, op).since);
  }
  return absl::StrCat(release.major, ".", release.minor, ".0");
}

}  // namespace optfarm::formats::tflite_raising
