#include "engine/transforms/quantizing/explicit_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/quantized_op_nodes.h"

namespace optfarm::transforms {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;
using tensorflow::DataType;

std::optional<LinearQuantization> QuantizationOfRange(runtime::Range range) {
  const auto scale =
      static_cast<float>((double{range.max} - range.min) / 255.0);
  if (!std::isfinite(scale) || scale <= 0.0f) return std::nullopt;
  const int64_t zero = runtime::QuantizeUnclamped<uint8_t>(0.0f, range);
  if (zero < 0 || zero > 255) return std::nullopt;
  return LinearQuantization{scale, static_cast<int32_t>(zero), scale};
}

DataType ExplicitValues::TypeOf(ActivationForm form) {
  if (form == ActivationForm::kInt16) return tensorflow::DT_INT16;
  return form == ActivationForm::kUint8 ? tensorflow::DT_UINT8
                                        : tensorflow::DT_INT8;
}

std::optional<LinearQuantization> ExplicitValues::QuantizationFor(
    runtime::Range range) const {
  std::optional<LinearQuantization> result = QuantizationOfRange(range);
  if (!result.has_value()) return result;
  const float most = std::max(std::abs(range.min), std::abs(range.max));
  if (form_ == ActivationForm::kSymmetric) {
    result->scale = most / 127.0f;
    result->zero_point = 128;
  } else if (form_ == ActivationForm::kInt16) {
    result->scale = most / 32767.0f;
    result->zero_point = 0;
  }
  if (!(result->scale > 0.0f)) return std::nullopt;
  return result;
}

NodeId ExplicitValues::Add(tensorflow::NodeDef def,
                           absl::Span<const Endpoint> inputs) {
  return graph_->Add(std::move(def), inputs, {}, at_);
}

NodeId ExplicitValues::Add(absl::string_view name, absl::string_view op,
                           absl::Span<const Endpoint> inputs, DataType t) {
  tensorflow::NodeDef def = MakeNode(name, op, graph_->node(at_));
  if (t != tensorflow::DT_INVALID) graph::SetType(&def, "T", t);
  return Add(std::move(def), inputs);
}

Endpoint ExplicitValues::AddConst(absl::string_view name, const Tensor& value) {
  return {Add(MakeConst(name, value), {}), 0};
}

const ExplicitTensor* ExplicitValues::QuantizedOf(Endpoint old) const {
  const auto found = quantized_.find(old);
  return found == quantized_.end() ? nullptr : &found->second;
}

Endpoint ExplicitValues::AddZeroPoint(absl::string_view name, DataType type,
                                      int32_t value, int64_t count) {
  const runtime::Shape shape =
      count == 1 ? runtime::Shape() : runtime::Shape({count});
  const std::string constant = absl::StrCat(name, "/zero_point");
  const auto filled = [&](auto number) {
    const std::vector<decltype(number)> all(static_cast<size_t>(count), number);
    return AddConst(constant, Tensor::FromValues<decltype(number)>(shape, all));
  };
  if (type == tensorflow::DT_INT32) return filled(value);
  if (type == tensorflow::DT_INT16) return filled(static_cast<int16_t>(value));
  if (type == tensorflow::DT_INT8) return filled(static_cast<int8_t>(value));
  return filled(static_cast<uint8_t>(value));
}

std::optional<Endpoint> ExplicitValues::FloatsOf(Endpoint old) {
  const auto found = floats_.find(old);
  if (found != floats_.end()) return found->second;
  const ExplicitTensor* tensor = QuantizedOf(old);
  if (tensor == nullptr) return std::nullopt;
  const std::string name =
      absl::StrCat(graph_->node(tensor->values.node).name(), "/dequantized");
  const LinearQuantization& from = tensor->quantization;
  const Endpoint scale =
      AddConst(absl::StrCat(name, "/scale"), Tensor::Scalar<float>(from.scale));
  const Endpoint zero =
      AddZeroPoint(name, type_, from.zero_point - offset(), 1);
  tensorflow::NodeDef def =
      MakeNode(name, "DequantizeLinear", graph_->node(at_));
  graph::SetType(&def, "Q", type_);
  const Endpoint floats = {Add(std::move(def), {tensor->values, scale, zero}),
                           0};
  floats_[old] = floats;
  return floats;
}

ExplicitTensor ExplicitValues::Quantize(Endpoint floats,
                                        const LinearQuantization& to) {
  const std::string name =
      absl::StrCat(graph_->node(floats.node).name(), "/quantized");
  const Endpoint scale =
      AddConst(absl::StrCat(name, "/scale"), Tensor::Scalar<float>(to.scale));
  const Endpoint zero = AddZeroPoint(name, type_, to.zero_point - offset(), 1);
  tensorflow::NodeDef def = MakeNode(name, "QuantizeLinear", graph_->node(at_));
  graph::SetType(&def, "T", tensorflow::DT_FLOAT);
  graph::SetType(&def, "Q", type_);
  return {{Add(std::move(def), {floats, scale, zero}), 0}, to};
}

Endpoint ExplicitValues::AddDequantized(absl::string_view name,
                                        const Tensor& integers,
                                        absl::Span<const float> scales,
                                        int axis, int32_t zero_point) {
  const auto count = static_cast<int64_t>(scales.size());
  const Endpoint values = AddConst(absl::StrCat(name, "/quantized"), integers);
  const Endpoint scale =
      AddConst(absl::StrCat(name, "/scale"),
               count == 1 ? Tensor::Scalar<float>(scales[0])
                          : Tensor::FromValues<float>({count}, scales));
  const Endpoint zero = AddZeroPoint(name, integers.dtype(), zero_point, count);
  tensorflow::NodeDef def =
      MakeNode(name, "DequantizeLinear", graph_->node(at_));
  graph::SetType(&def, "Q", integers.dtype());
  if (count > 1) graph::SetInt(&def, "axis", axis);
  return {Add(std::move(def), {values, scale, zero}), 0};
}

}  // namespace optfarm::transforms
