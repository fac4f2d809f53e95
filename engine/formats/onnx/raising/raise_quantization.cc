// Between real numbers and quantized values with an explicit scale and zero
// point, which ONNX has in the same form. Scales and zero points keep their
// bits.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lite_rounding.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/formats/onnx/raising/sum_rounding.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/reference/quantized/block_quantization.h"

namespace optfarm::formats {
namespace {

// Scale and zero point of 8 bits at these inputs of a node.
std::optional<SumTensor> SumTensorAt(GraphRaiser& graph,
                                     const graph::Node& node) {
  if (node.inputs().size() != 3) return std::nullopt;
  const auto scale = graph.FloatsOf(node.inputs()[1]);
  const auto zero = graph.IntegersOf(node.inputs()[2]);
  const tensorflow::DataType type = graph.TypeOf(node.inputs()[2]);
  if (!scale.has_value() || scale->size() != 1 || !(scale->front() > 0) ||
      !zero.has_value() || zero->size() != 1 ||
      (type != tensorflow::DT_INT8 && type != tensorflow::DT_UINT8)) {
    return std::nullopt;
  }
  const int offset = type == tensorflow::DT_INT8 ? 128 : 0;
  return SumTensor{scale->front(),
                   static_cast<int32_t>(zero->front()) + offset};
}

// UNITS: steps. By how much a value is moved for halves to go up.
float MoveUp(NodeRaiser& n, graph::Endpoint source) {
  const graph::Graph& graph = n.graph().graph();
  const graph::Node& sum = graph.node(source.node);
  if (!graph::IsSum(sum.op()) || sum.inputs().size() != 2) return kNearHalf;
  std::optional<SumTensor> parts[2];
  for (int i = 0; i < 2; ++i) {
    const graph::Node& part = graph.node(sum.inputs()[i].node);
    if (!graph::IsDequantizeLinear(part.op())) return kNearHalf;
    parts[i] = SumTensorAt(n.graph(), part);
  }
  const auto result = SumTensorAt(n.graph(), n.node());
  if (!parts[0] || !parts[1] || !result) return kNearHalf;
  return NearestMove(*parts[0], *parts[1], *result);
}

// The interpreter does not round all halves to even (docs/tflite.md). Moved a
// little, they are none, and QuantizeLinear rounds them to where it does.
absl::StatusOr<ValueId> OffHalves(NodeRaiser& n, graph::Endpoint source,
                                  ValueId x) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string rounding,
      graph::GetStringOr(n.def(), "rounding", "half_to_even"));
  OPTFARM_ASSIGN_OR_RETURN(const float input_scale,
                           graph::GetFloatOr(n.def(), "input_scale", 0));
  const auto scale = n.graph().FloatsOf(n.input(1));
  const auto zero = n.graph().IntegersOf(n.input(2));
  if ((rounding == "half_to_even" && input_scale == 0) || !scale.has_value() ||
      scale->size() != 1 || !zero.has_value() || zero->size() != 1 ||
      n.InType(0) != tensorflow::DT_FLOAT) {
    return x;
  }
  const float step = scale->front();
  const auto number = [&](float value) {
    return n.Number(tensorflow::DT_FLOAT, value);
  };
  if (input_scale > 0) {
    const ValueId scaled =
        n.Emit("Mul", {x, number(RatioFactor(input_scale, step))});
    return n.Emit("Add", {scaled, number(step * kNearRatio)});
  }
  if (rounding == "half_up") {
    const float move = MoveUp(n, source);
    return move == 0 ? x : n.Emit("Add", {x, number(step * move)});
  }
  // Away from the quantized value 0.
  const float zero_value = static_cast<float>(zero->front()) * step;
  const ValueId sign = n.Emit("Sign", {n.Emit("Add", {x, number(zero_value)})});
  return n.Emit("Add", {x, n.Emit("Mul", {sign, number(step * kNearHalf)})});
}

// Whether a clamp to [0, most] changes nothing that rounding and saturating do
// not do as well. No `most`: without an upper end.
bool IsIdleClamp(NodeRaiser& n, std::optional<float> most) {
  const auto scale = n.graph().FloatsOf(n.input(1));
  const auto zero = n.graph().IntegersOf(n.input(2));
  const bool is_signed = n.InType(2) == tensorflow::DT_INT8;
  if (!scale.has_value() || scale->size() != 1 || !(scale->front() > 0) ||
      !zero.has_value() || zero->size() != 1 ||
      (!is_signed && n.InType(2) != tensorflow::DT_UINT8)) {
    return false;
  }
  const float least = is_signed ? -128.0f : 0.0f;
  const auto offset = static_cast<float>(zero->front());
  if (offset > least) return false;
  return !most.has_value() ||
         std::nearbyint(*most / scale->front()) + offset >= least + 255;
}

// What is quantized, without a Relu that quantizing is too: runtimes take a
// layer for one on integers only when QuantizeLinear follows it directly.
graph::Endpoint WithoutIdleClamp(NodeRaiser& n) {
  const graph::Endpoint x = n.input(0);
  const graph::Node& clamp = n.graph().graph().node(x.node);
  const graph::Activation activation = graph::ActivationOf(clamp.op());
  if (activation == graph::Activation::kNone || clamp.inputs().size() != 1 ||
      !n.graph().IsSet(clamp.inputs()[0])) {
    return x;
  }
  const bool is_relu6 = activation == graph::Activation::kRelu6;
  return IsIdleClamp(n, is_relu6 ? std::optional<float>(6) : std::nullopt)
             ? clamp.inputs()[0]
             : x;
}

// Opsets before 21 quantize to 8 bits only: 16 by arithmetic.
absl::Status LinearOf16Bits(NodeRaiser& n, tensorflow::DataType type) {
  const auto zero = n.graph().IntegersOf(n.input(2));
  if (!zero.has_value() || zero->size() != 1) {
    return absl::UnimplementedError(
        "values of 16 bits with a scale for each channel need opset 21");
  }
  const auto number = [&](double value) {
    return n.Number(tensorflow::DT_FLOAT, value);
  };
  const AxisOrder order = n.OrderOf(0);
  const ValueId scale = n.graph().ScaleOf(n.input(1));
  const auto offset = static_cast<double>(zero->front());
  ValueId x = n.In(0, order);
  if (graph::IsDequantizeLinear(n.node().op())) {
    x = n.Cast(x, type, tensorflow::DT_FLOAT);
    if (offset != 0) x = n.Emit("Sub", {x, number(offset)});
    n.Set(n.Emit("Mul", {x, scale}), order);
    return absl::OkStatus();
  }
  const double least = type == tensorflow::DT_INT16 ? -32768 : 0;
  x = n.Emit("Round", {n.Emit("Div", {x, scale})});
  if (offset != 0) x = n.Emit("Add", {x, number(offset)});
  x = n.Emit("Clip", {x, number(least), number(least + 65535)});
  n.Set(n.Cast(x, tensorflow::DT_FLOAT, type), order);
  return absl::OkStatus();
}

// x, scale, zero point
absl::Status Linear(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(n.def(), "bits", 8));
  const bool quantizes = graph::IsQuantizeLinear(n.node().op());
  if (quantizes && bits < 8) {
    return absl::UnimplementedError(
        absl::StrCat("values of ", bits, " bits are not written yet"));
  }
  const tensorflow::DataType type = n.InType(2);
  if (n.opset() < 21 &&
      (type == tensorflow::DT_INT16 || type == tensorflow::DT_UINT16)) {
    return LinearOf16Bits(n, type);
  }
  const graph::Endpoint source = quantizes ? WithoutIdleClamp(n) : n.input(0);
  const AxisOrder order = n.graph().OrderOf(source);
  const graph::PartialShape& scale = n.InShape(1);
  std::vector<OnnxAttribute> attributes;
  const bool is_per_axis = scale.has_rank() && scale.rank() == 1 &&
                           scale.elements().value_or(2) != 1;
  if (is_per_axis) {
    OPTFARM_ASSIGN_OR_RETURN(const int64_t given,
                             graph::GetIntOr(n.def(), "axis", -1));
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
    OPTFARM_ASSIGN_OR_RETURN(const int axis, n.Axis(given, rank));
    attributes.push_back({"axis", int64_t{AxisInFile(order, axis)}});
  }
  ValueId x = n.graph().In(source, order);
  if (quantizes) {
    OPTFARM_ASSIGN_OR_RETURN(x, OffHalves(n, source, x));
  }
  const ValueId result =
      n.Emit(n.onnx_op(),
             {x, n.graph().ScaleOf(n.input(1)), n.graph().ScaleOf(n.input(2))},
             std::move(attributes));
  OPTFARM_ASSIGN_OR_RETURN(const std::string rounding,
                           graph::GetStringOr(n.def(), "rounding", ""));
  if (quantizes && rounding == "half_up") {
    n.graph().model()->AddNote(result, kRoundingNote, rounding);
  }
  n.Set(result, order);
  return absl::OkStatus();
}

// x, scale, zero point, the first and the last two to a byte, as in the file.
absl::Status Blocks(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  if (n.opset() < 21) {
    return absl::UnimplementedError("4-bit values in blocks need opset 21");
  }
  OPTFARM_ASSIGN_OR_RETURN(const runtime::BlockGrid grid,
                           runtime::BlockGrid::Of(n.def()));
  const GraphConstant* const x = n.graph().ConstantOf(n.input(0));
  const GraphConstant* const zero_point = n.graph().ConstantOf(n.input(2));
  if (x == nullptr || zero_point == nullptr) {
    return absl::UnimplementedError("its 4-bit values are not constant");
  }
  const auto add = [&](std::string bytes, const runtime::Shape& shape,
                       const char* name) -> absl::StatusOr<ValueId> {
    if (bytes.size() !=
        static_cast<size_t>(runtime::FourBitBytes(shape.num_elements()))) {
      return absl::InvalidArgumentError("its 4-bit values do not fit 'shape'");
    }
    return n.graph().model()->AddConstant(
        tensorflow::DT_UINT4, {shape.dims().begin(), shape.dims().end()},
        std::move(bytes), absl::StrCat(n.name(), name));
  };
  // Where there are none, they are the middle.
  std::string zero_bytes(zero_point->bytes);
  if (zero_bytes.empty()) {
    zero_bytes.assign(
        static_cast<size_t>(runtime::FourBitBytes(grid.scale_count())),
        static_cast<char>(0x11 * runtime::kMiddleOfFourBits));
  }
  OPTFARM_ASSIGN_OR_RETURN(const ValueId values,
                           add(std::string(x->bytes), grid.shape(), "/values"));
  OPTFARM_ASSIGN_OR_RETURN(
      const ValueId zeros,
      add(std::move(zero_bytes), grid.ScaleShape(), "/zero_points"));
  const ValueId scale = n.Cast(n.In(1), n.InType(1), tensorflow::DT_FLOAT);
  n.Set(n.Emit("DequantizeLinear", {values, scale, zeros},
               {{"axis", int64_t{grid.axis()}}, {"block_size", grid.block()}}));
  return absl::OkStatus();
}

absl::Status DynamicQuantize(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  const std::vector<ValueId> outputs =
      n.EmitMany("DynamicQuantizeLinear", {n.In(0, order)}, 3);
  n.SetPort(0, outputs[0], order);
  n.SetPort(1, outputs[1]);
  n.SetPort(2, outputs[2]);
  return absl::OkStatus();
}

// Rounds to the nearest of the values that `bits` bits stand for: through
// quantized values and back.
absl::Status FakeQuantize(NodeRaiser& n, float min, float max) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(n.def(), "num_bits", 8));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_narrow,
                           graph::GetBoolOr(n.def(), "narrow_range", false));
  if (bits != 8 || !(min < max)) {
    return absl::UnimplementedError(absl::StrCat(
        "a range [", min, ", ", max, "] of ", bits, " bits is not written"));
  }
  // TensorFlow moves the range so that zero is one of the values.
  const float lowest = is_narrow ? 1.0f : 0.0f;
  const float scale = (max - min) / (255.0f - lowest);
  const float zero =
      std::clamp(std::round(lowest - min / scale), lowest, 255.0f);
  const AxisOrder order = n.OrderOf(0);
  ValueId x = n.In(0, order);
  if (is_narrow) {
    x = n.Emit("Max",
               {x, n.Number(tensorflow::DT_FLOAT, (lowest - zero) * scale)});
  }
  const ValueId step = n.Number(tensorflow::DT_FLOAT, scale);
  const ValueId zero_point = n.Number(tensorflow::DT_UINT8, zero);
  const ValueId values = n.Emit("QuantizeLinear", {x, step, zero_point});
  n.Set(n.Emit("DequantizeLinear", {values, step, zero_point}), order);
  return absl::OkStatus();
}

absl::Status FakeQuantVars(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const auto min = n.graph().FloatsOf(n.input(1));
  const auto max = n.graph().FloatsOf(n.input(2));
  if (!min.has_value() || !max.has_value() || min->size() != 1 ||
      max->size() != 1) {
    return absl::FailedPreconditionError("its range is not a constant");
  }
  return FakeQuantize(n, (*min)[0], (*max)[0]);
}

absl::Status FakeQuantArgs(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  OPTFARM_ASSIGN_OR_RETURN(const float min,
                           graph::GetFloatOr(n.def(), "min", -6));
  OPTFARM_ASSIGN_OR_RETURN(const float max,
                           graph::GetFloatOr(n.def(), "max", 6));
  return FakeQuantize(n, min, max);
}

constexpr RaisingRow kRows[] = {
    {"FakeQuantWithMinMaxVars", FakeQuantVars},
    {"FakeQuantWithMinMaxArgs", FakeQuantArgs},
    {"QuantizeLinear", Linear, "QuantizeLinear"},
    {"DequantizeLinear", Linear, "DequantizeLinear"},
    {"DequantizeBlocks", Blocks},
    {"DynamicQuantizeLinear", DynamicQuantize},
};

}  // namespace

absl::Span<const RaisingRow> QuantizationRaisings() { return kRows; }

}  // namespace optfarm::formats
