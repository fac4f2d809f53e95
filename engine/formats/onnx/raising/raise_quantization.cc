// Between real numbers and quantized values with an explicit scale and zero
// point, which ONNX has in the same form. Scales and zero points keep their
// bits.

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// x, scale, zero point
absl::Status Linear(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(n.def(), "bits", 8));
  const bool narrows = n.node().op() == "QuantizeLinear" && bits < 8;
  if (narrows) {
    return absl::UnimplementedError(
        absl::StrCat("values of ", bits, " bits are not written yet"));
  }
  const AxisOrder order = n.OrderOf(0);
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
  n.Set(n.Emit(n.onnx_op(),
               {n.In(0, order), n.graph().ScaleOf(n.input(1)),
                n.graph().ScaleOf(n.input(2))},
               std::move(attributes)),
        order);
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
    {"DynamicQuantizeLinear", DynamicQuantize},
};

}  // namespace

absl::Span<const RaisingRow> QuantizationRaisings() { return kRows; }

}  // namespace optfarm::formats
