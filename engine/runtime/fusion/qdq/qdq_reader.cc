#include "engine/runtime/fusion/qdq/qdq_reader.h"

#include <cmath>

#include "engine/graph/attr.h"

namespace optfarm::runtime {
namespace {

bool IsScale(float scale) { return std::isfinite(scale) && scale > 0; }

bool IsEightBit(DataType dtype) {
  return dtype == tensorflow::DT_INT8 || dtype == tensorflow::DT_UINT8;
}

bool HasEightBits(const Step& step) {
  const auto bits = graph::GetIntOr(*step.node, "bits", 8);
  return bits.ok() && *bits == 8;
}

// Scale and zero point of a step, one for all. `dtype`: that of the zero point.
std::optional<QdqTensor> ReadScalars(const PlanEditor& plan, const Step& step) {
  if (step.inputs.size() != 3 || step.outputs.size() != 1 ||
      !HasEightBits(step)) {
    return std::nullopt;
  }
  const Tensor* scale = plan.ConstantOf(step.inputs[1]);
  const Tensor* zero = plan.ConstantOf(step.inputs[2]);
  if (scale == nullptr || zero == nullptr ||
      scale->dtype() != tensorflow::DT_FLOAT || scale->num_elements() != 1 ||
      zero->num_elements() != 1 || !IsEightBit(zero->dtype())) {
    return std::nullopt;
  }
  QdqTensor tensor;
  tensor.dtype = zero->dtype();
  tensor.scale = scale->data<float>()[0];
  tensor.zero_point =
      tensor.is_signed() ? zero->data<int8_t>()[0] : zero->data<uint8_t>()[0];
  if (!IsScale(tensor.scale)) return std::nullopt;
  return tensor;
}

}  // namespace

bool IsNode(const Step* step, const char* op) {
  return step != nullptr && step->node != nullptr && step->op == op;
}

std::optional<QdqSource> ReadQdqSource(const PlanEditor& plan, int slot) {
  const int number = plan.ProducerOf(slot);
  if (number == kNoStep || !IsNode(plan.step(number), "DequantizeLinear")) {
    return std::nullopt;
  }
  const Step& step = *plan.step(number);
  const auto tensor = ReadScalars(plan, step);
  if (!tensor || plan.ConstantOf(step.inputs[0]) != nullptr) {
    return std::nullopt;
  }
  return QdqSource{slot, step.inputs[0], *tensor};
}

std::optional<QdqConstant> ReadQdqConstant(const PlanEditor& plan, int slot) {
  const int number = plan.ProducerOf(slot);
  if (number == kNoStep || !IsNode(plan.step(number), "DequantizeLinear")) {
    return std::nullopt;
  }
  const Step& step = *plan.step(number);
  if (step.inputs.size() != 3 || !HasEightBits(step)) return std::nullopt;
  QdqConstant constant;
  constant.values = plan.ConstantOf(step.inputs[0]);
  const Tensor* scale = plan.ConstantOf(step.inputs[1]);
  const Tensor* zero = plan.ConstantOf(step.inputs[2]);
  const auto axis = graph::GetIntOr(*step.node, "axis", -1);
  if (constant.values == nullptr || scale == nullptr || zero == nullptr ||
      scale->dtype() != tensorflow::DT_FLOAT || scale->rank() > 1 ||
      !axis.ok()) {
    return std::nullopt;
  }
  const int rank = constant.values->rank();
  const int64_t place = *axis < 0 ? *axis + rank : *axis;
  if (scale->num_elements() > 1 &&
      (place < 0 || place >= rank ||
       scale->num_elements() !=
           constant.values->dim(static_cast<int>(place)))) {
    return std::nullopt;
  }
  constant.axis = static_cast<int>(place);
  constant.scales.assign(scale->data<float>(),
                         scale->data<float>() + scale->num_elements());
  for (float each : constant.scales) {
    if (!IsScale(each)) return std::nullopt;
  }
  const auto zeros = zero->AsInt64s();
  if (!zeros.ok() || zeros->empty()) return std::nullopt;
  for (int64_t each : *zeros) {
    constant.zero_points.push_back(static_cast<int32_t>(each));
  }
  return constant;
}

std::optional<QdqTensor> ReadQdqResult(const PlanEditor& plan,
                                       const Step& quantize) {
  if (!IsNode(&quantize, "QuantizeLinear")) return std::nullopt;
  return ReadScalars(plan, quantize);
}

}  // namespace optfarm::runtime
