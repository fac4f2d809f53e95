// Makes tensors of a draft from what the graph has.

#include "engine/formats/tflite/raising/raised_tensors.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using tflite::BuiltinOperator;
using tflite::TensorType;

// Smaller constants stay in float: they cost nothing, and biases need it.
constexpr int64_t kLeastHalfElements = 16;
// Smaller quantized constants become floats where a float is wanted.
constexpr int64_t kLeastStoredElements = 256;

bool IsActivationType(TensorType type) {
  return type == TensorType::INT8 || type == TensorType::UINT8 ||
         type == TensorType::INT16;
}

// Types that models compute with in float.
TensorType ComputedType(TensorType type) {
  return type == TensorType::FLOAT16 || type == TensorType::FLOAT64 ||
                 type == TensorType::BFLOAT16
             ? TensorType::FLOAT32
             : type;
}

Constant ToHalf(const Constant& constant) {
  Constant half = constant;
  half.dtype = tensorflow::DT_HALF;
  half.bytes.clear();
  const auto values = RealValues(constant);
  OPTFARM_CHECK(values.ok());
  for (float value : *values) {
    const uint16_t bits = HalfFromFloat(value);
    half.bytes.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return half;
}

}  // namespace

RaisedTensors::RaisedTensors(const GraphView& view,
                             const TfliteWriteOptions& options,
                             ModelDraft* draft)
    : view_(view),
      options_(options),
      draft_(draft),
      shifts_to_signed_(CanShiftToSigned()) {}

bool RaisedTensors::CanShiftToSigned() const {
  for (graph::NodeId id : view_.order()) {
    const graph::Node& node = view_.graph().node(id);
    if (!graph::IsDequantizeLinear(node.op()) || !view_.IsConstant({id, 0}))
      continue;
    if (view_.TypeOf(view_.InputOf(id, 0)) != tensorflow::DT_UINT8) continue;
    const auto scales = view_.ScalesOf(id);
    // int8 weights have no zero point: those that need one stay uint8, and
    // with them what they are multiplied with.
    if (scales.ok() &&
        std::any_of(scales->zero_point.begin(), scales->zero_point.end(),
                    [](int64_t zero_point) { return zero_point != 128; })) {
      return false;
    }
  }
  return true;
}

Quantization RaisedTensors::StoredScales(const Quantization& scales,
                                         tensorflow::DataType dtype) const {
  Quantization stored = scales;
  if (dtype == tensorflow::DT_UINT8 && shifts_to_signed_) {
    for (int64_t& zero_point : stored.zero_point) zero_point -= 128;
  }
  return stored;
}

TensorType RaisedTensors::StoredType(tensorflow::DataType dtype) const {
  if (dtype == tensorflow::DT_UINT8 && shifts_to_signed_) {
    return TensorType::INT8;
  }
  TensorType type = TensorType::FLOAT32;
  FindTensorType(dtype, &type);
  return type;
}

std::optional<Quantized> RaisedTensors::QuantizedReader(const Reader& reader,
                                                        int moves_left) const {
  if (reader.input != 0) return std::nullopt;
  const Endpoint made = {reader.node, 0};
  const graph::Node& node = view_.graph().node(reader.node);
  if (IsRearrangement(node.op()) && moves_left > 0) {
    std::optional<Quantized> moved = QuantizedReaders(made, moves_left - 1);
    if (moved.has_value()) moved->stored = {};
    return moved;
  }
  if (!graph::IsQuantizeLinear(node.op())) return std::nullopt;
  const auto scales = view_.ScalesOf(reader.node);
  const tensorflow::DataType dtype = view_.TypeOf(made);
  if (!scales.ok() || scales->scale.size() != 1) return std::nullopt;
  Quantized one = {StoredScales(*scales, dtype), StoredType(dtype), made};
  if (!IsActivationType(one.type)) return std::nullopt;
  return one;
}

std::optional<Quantized> RaisedTensors::QuantizedReaders(Endpoint tensor,
                                                         int moves_left) const {
  if (view_.IsOutput(tensor)) return std::nullopt;
  std::optional<Quantized> result;
  for (const Reader& reader : view_.ReadersOf(tensor)) {
    std::optional<Quantized> one = QuantizedReader(reader, moves_left);
    if (!one.has_value()) return std::nullopt;
    if (!result.has_value()) {
      result = std::move(one);
      continue;
    }
    result->alike = result->alike && one->alike &&
                    result->scales == one->scales && result->type == one->type;
    if (result->stored.node == graph::kNoNode) result->stored = one->stored;
  }
  return result;
}

TensorId RaisedTensors::NewTensor(Endpoint tensor) {
  tensor = view_.Source(tensor);
  const tensorflow::DataType dtype = view_.TypeOf(tensor);
  const Quantization* scales = view_.QuantizationOf(tensor);
  if (scales != nullptr) {
    return NewTensor(tensor, StoredType(dtype), StoredScales(*scales, dtype));
  }
  TensorType type = TensorType::FLOAT32;
  FindTensorType(dtype, &type);
  return NewTensor(tensor, ComputedType(type), {});
}

TensorId RaisedTensors::NewTensor(Endpoint tensor, TensorType type,
                                  Quantization scales) {
  DraftTensor made;
  made.name = graph::TensorNameInFile(view_.graph(), tensor);
  made.type = type;
  made.shape = view_.ShapeOf(tensor);
  made.quantization = std::move(scales);
  return draft_->AddTensor(std::move(made));
}

TensorId RaisedTensors::Dequantized(Endpoint tensor, TensorId twin) {
  const TensorId made = NewTensor(tensor, TensorType::FLOAT32, {});
  draft_->AddOperator(BuiltinOperator::DEQUANTIZE, {twin}, {made});
  return made;
}

TensorId RaisedTensors::ConstantTensor(const std::string& name,
                                       Constant constant) {
  const bool is_wide = constant.dtype == tensorflow::DT_DOUBLE ||
                       constant.dtype == tensorflow::DT_BFLOAT16;
  if (is_wide) {
    const auto values = RealValues(constant);
    OPTFARM_CHECK(values.ok());
    constant = FloatConstant(constant.dims, *values);
  }
  const bool is_large = constant.elements() >= kLeastHalfElements;
  if (constant.dtype == tensorflow::DT_FLOAT && is_large &&
      options_.weights == TfliteWeights::kHalf) {
    constant = ToHalf(constant);
  }
  if (constant.dtype == tensorflow::DT_HALF && !is_large) {
    const auto values = RealValues(constant);
    OPTFARM_CHECK(values.ok());
    constant = FloatConstant(constant.dims, *values);
  }
  const bool is_half = constant.dtype == tensorflow::DT_HALF;
  const bool is_quantized = constant.is_quantized();
  const graph::PartialShape shape(constant.dims);
  const TensorId stored = draft_->AddConstant(name, std::move(constant));
  if (!is_half || is_quantized) return stored;
  DraftTensor widened;
  widened.name = name + "/float";
  widened.type = TensorType::FLOAT32;
  widened.shape = shape;
  const TensorId made = draft_->AddTensor(std::move(widened));
  draft_->AddOperator(BuiltinOperator::DEQUANTIZE, {stored}, {made});
  return made;
}

TensorId RaisedTensors::RaiseConstant(Endpoint tensor, Constant constant) {
  const std::string name = graph::TensorNameInFile(view_.graph(), tensor);
  if (constant.is_quantized()) {
    const bool is_stored = constant.elements() >= kLeastStoredElements &&
                           (constant.dtype == tensorflow::DT_INT8 ||
                            constant.dtype == tensorflow::DT_UINT8) &&
                           constant.channel_axis() >= 0;
    if (is_stored) {
      if (constant.dtype == tensorflow::DT_UINT8 && shifts_to_signed_) {
        ShiftToSigned(&constant);
      }
      return Dequantized(tensor,
                         draft_->AddConstant(name, std::move(constant)));
    }
    const auto values = RealValues(constant);
    if (values.ok()) constant = FloatConstant(constant.dims, *values);
  } else if (const Quantization* scales = view_.QuantizationOf(tensor)) {
    const bool shifts =
        constant.dtype == tensorflow::DT_UINT8 && shifts_to_signed_;
    if (SetScales(scales->scale, scales->zero_point, scales->axis, &constant)
            .ok() &&
        shifts) {
      ShiftToSigned(&constant);
    }
  }
  return ConstantTensor(name, std::move(constant));
}

TensorId RaisedTensors::Tensor(Endpoint tensor) {
  tensor = view_.Source(tensor);
  if (const auto it = tensors_.find(tensor); it != tensors_.end()) {
    return it->second;
  }
  TensorId made = kNoTensor;
  TensorType type{};
  const tensorflow::DataType dtype = view_.TypeOf(tensor);
  const graph::PartialValue* value = view_.shapes().ValueOf(tensor);
  if (view_.IsConstant(tensor)) {
    auto constant = view_.ConstantAt(tensor);
    if (constant.ok() && FindTensorType(constant->dtype, &type)) {
      made = RaiseConstant(tensor, *std::move(constant));
    }
  } else if (value != nullptr && value->is_known() && !view_.IsInput(tensor) &&
             (dtype == tensorflow::DT_INT32 || dtype == tensorflow::DT_INT64)) {
    Constant known;
    known.dtype = dtype;
    known.dims = value->dims;
    for (const auto& element : value->elements) {
      known.bytes.append(reinterpret_cast<const char*>(&*element),
                         dtype == tensorflow::DT_INT32 ? 4 : 8);
    }
    made = draft_->AddConstant(graph::TensorNameInFile(view_.graph(), tensor),
                               std::move(known));
  }
  if (made == kNoTensor) {
    const std::optional<TensorId> twin = Twin(tensor);
    made = twin.has_value() ? Dequantized(tensor, *twin) : NewTensor(tensor);
  }
  tensors_[tensor] = made;
  return made;
}

std::optional<TensorId> RaisedTensors::MovedTwin(Endpoint tensor) {
  if (!view_.IsConstant(tensor)) return std::nullopt;
  auto constant = view_.ConstantAt(tensor);
  if (!constant.ok() || !constant->is_quantized() ||
      constant->scale.size() != 1 ||
      !IsActivationType(StoredType(constant->dtype))) {
    return std::nullopt;
  }
  if (constant->dtype == tensorflow::DT_UINT8 && shifts_to_signed_) {
    ShiftToSigned(&*constant);
  }
  const TensorId twin = draft_->AddConstant(
      graph::TensorNameInFile(view_.graph(), tensor), *std::move(constant));
  twins_[tensor] = twin;
  return twin;
}

std::optional<TensorId> RaisedTensors::Twin(Endpoint tensor) {
  tensor = view_.Source(tensor);
  if (const auto it = twins_.find(tensor); it != twins_.end()) {
    return it->second;
  }
  const graph::Node& node = view_.graph().node(tensor.node);
  if (view_.IsInput(tensor)) return std::nullopt;
  if (!graph::IsDequantizeLinear(node.op())) return MovedTwin(tensor);
  const Endpoint stored = view_.InputOf(tensor.node, 0);
  const auto scales = view_.ScalesOf(tensor.node);
  const Quantization* known = view_.QuantizationOf(stored);
  // Equal values may be one constant under several scales.
  if (scales.ok() && known != nullptr && *known != *scales) {
    return MovedTwin(tensor);
  }
  if (!scales.ok() || scales->scale.size() != 1 || known == nullptr ||
      !IsActivationType(StoredType(view_.TypeOf(stored)))) {
    return std::nullopt;
  }
  const TensorId twin = Tensor(stored);
  if (!IsActivationType(draft_->tensor(twin).type)) return std::nullopt;
  twins_[tensor] = twin;
  return twin;
}

}  // namespace optfarm::formats::tflite_raising
