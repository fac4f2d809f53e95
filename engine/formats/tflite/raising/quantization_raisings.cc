// Where real numbers become quantized values, and back.

#include <tflite/schema_generated.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using tflite::BuiltinOperator;
using tflite::TensorType;

bool IsStorable(TensorType type) {
  return type == TensorType::INT8 || type == TensorType::UINT8 ||
         type == TensorType::INT16;
}

// Scale or zero point in the shape in which it meets the values: as it is for
// one, along its axis for several.
absl::StatusOr<TensorId> Parameter(NodeRaiser& node, int input) {
  const graph::PartialShape& shape = node.ShapeOfInput(input);
  const graph::PartialShape& whole = node.ShapeOfInput(0);
  if (!shape.is_static() || shape.rank() > 1) {
    return absl::UnimplementedError(
        "it has scales in blocks, or as many as only a run knows");
  }
  const TensorId given = node.Tensor(input);
  TensorId real = given;
  if (node.draft().tensor(given).type != TensorType::FLOAT32) {
    real = node.EmitBetween(BuiltinOperator::CAST, {given}, given, shape);
    node.draft().tensors[real].type = TensorType::FLOAT32;
    node.draft().tensors[real].quantization = {};
  }
  if (shape.rank() == 0) return real;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t stated,
                           graph::GetIntOr(node.def(), "axis", -1));
  if (!whole.has_rank()) {
    return absl::FailedPreconditionError("the rank of its input is not known");
  }
  std::vector<int64_t> dims(static_cast<size_t>(whole.rank()), 1);
  if (shape.rank() == 1 && shape.dim(0) != 1) {
    OPTFARM_ASSIGN_OR_RETURN(const int axis, node.AxisOf(stated, 0));
    dims[static_cast<size_t>(axis)] = shape.dim(0);
  }
  return node.EmitBetween(BuiltinOperator::RESHAPE, {real, node.Int32s(dims)},
                          real, graph::PartialShape(dims));
}

// Least and largest value of a type; false for types that nothing is quantized
// to.
bool FindLimits(tensorflow::DataType dtype, float* least, float* largest) {
  switch (dtype) {
    case tensorflow::DT_INT8:
      *least = -128, *largest = 127;
      return true;
    case tensorflow::DT_UINT8:
      *least = 0, *largest = 255;
      return true;
    case tensorflow::DT_INT16:
      *least = -32768, *largest = 32767;
      return true;
    default:
      return false;
  }
}

// With a scale that is computed: the formula, in float, because quantized
// tensors of a file have scales that it states.
absl::Status QuantizeByArithmetic(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(node.def(), "bits", 8));
  const tensorflow::DataType dtype = node.view().TypeOf(node.output());
  float least = 0, largest = 0;
  if (!FindLimits(dtype, &least, &largest) || bits < 8) {
    return absl::UnimplementedError(
        absl::StrCat("its scale is computed, and it gives ",
                     graph::DataTypeName(dtype), " of ", bits, " bits"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const TensorId scale, Parameter(node, 1));
  OPTFARM_ASSIGN_OR_RETURN(const TensorId zero_point, Parameter(node, 2));
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  const TensorId x = node.Tensor(0);
  const auto step = [&](BuiltinOperator op, std::vector<TensorId> inputs) {
    return node.EmitBetween(op, std::move(inputs), scale, shape);
  };
  TensorId value = step(BuiltinOperator::DIV, {x, scale});
  value = step(BuiltinOperator::ROUND, {value});
  value = step(BuiltinOperator::ADD, {value, zero_point});
  value = step(BuiltinOperator::MAXIMUM, {value, node.Float(least)});
  value = step(BuiltinOperator::MINIMUM, {value, node.Float(largest)});
  node.Emit(BuiltinOperator::CAST, {value});
  return absl::OkStatus();
}

absl::Status DequantizeByArithmetic(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const TensorId scale, Parameter(node, 1));
  OPTFARM_ASSIGN_OR_RETURN(const TensorId zero_point, Parameter(node, 2));
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  TensorId value =
      node.EmitBetween(BuiltinOperator::CAST, {node.Tensor(0)}, scale, shape);
  value =
      node.EmitBetween(BuiltinOperator::SUB, {value, zero_point}, scale, shape);
  node.Emit(BuiltinOperator::MUL, {value, scale});
  return absl::OkStatus();
}

// Whether a run computes the scale or the zero point.
bool ComputesScales(const NodeRaiser& node) {
  return node.input_count() == 3 && (!node.view().IsConstant(node.input(1)) ||
                                     !node.view().IsConstant(node.input(2)));
}

absl::Status RaiseQuantize(NodeRaiser& node) {
  if (ComputesScales(node)) return QuantizeByArithmetic(node);
  OPTFARM_ASSIGN_OR_RETURN(const Quantization scales,
                           node.view().ScalesOf(node.output().node));
  const tensorflow::DataType dtype = node.view().TypeOf(node.output());
  const TensorType type = node.tensors().StoredType(dtype);
  if (!IsStorable(type)) {
    return absl::UnimplementedError(
        absl::StrCat("it gives ", graph::DataTypeName(dtype),
                     "; int8, uint8 and int16 are written"));
  }
  const Quantization stored = node.tensors().StoredScales(scales, dtype);
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(0));
  const TensorId from = twin.has_value() ? *twin : node.Tensor(0);
  const DraftTensor& source = node.draft().tensor(from);
  if (source.type == type && source.quantization == stored) {
    node.SetOutput(from);
    return absl::OkStatus();
  }
  const TensorId made = node.tensors().NewTensor(node.output(), type, stored);
  node.SetOutput(made);
  node.draft().AddOperator(BuiltinOperator::QUANTIZE, {from}, {made});
  return absl::OkStatus();
}

// Tensors that have a twin need nothing: readers find it. The rest, such as
// accumulators, become floats by arithmetic.
absl::Status RaiseDequantize(NodeRaiser& node) {
  if (node.tensors().Twin(node.output()).has_value()) return absl::OkStatus();
  if (ComputesScales(node)) return DequantizeByArithmetic(node);
  OPTFARM_ASSIGN_OR_RETURN(const Quantization scales,
                           node.view().ScalesOf(node.output().node));
  const Endpoint stored = node.input(0);
  const tensorflow::DataType dtype = node.view().TypeOf(stored);
  if (scales.scale.size() != 1 || dtype != tensorflow::DT_INT32) {
    return absl::UnimplementedError(absl::StrCat(
        "it reads ", graph::DataTypeName(dtype), " with ", scales.scale.size(),
        " scales that another node contradicts"));
  }
  DraftTensor real;
  real.name = absl::StrCat(node.node().name(), "/float");
  real.type = TensorType::FLOAT32;
  real.shape = node.ShapeOfInput(0);
  const TensorId cast = node.draft().AddTensor(std::move(real));
  node.draft().AddOperator(BuiltinOperator::CAST, {node.Tensor(0)}, {cast});
  TensorId centered = cast;
  if (scales.zero_point[0] != 0) {
    centered = node.EmitBetween(
        BuiltinOperator::SUB,
        {cast, node.Float(static_cast<float>(scales.zero_point[0]))}, cast,
        node.ShapeOfInput(0));
  }
  node.Emit(BuiltinOperator::MUL, {centered, node.Float(scales.scale[0])});
  return absl::OkStatus();
}

absl::Status RaiseFakeQuant(NodeRaiser& node) {
  OperatorOptions options;
  if (node.input_count() > 1) {
    OPTFARM_ASSIGN_OR_RETURN(const Constant low,
                             node.view().ConstantAt(node.input(1)));
    OPTFARM_ASSIGN_OR_RETURN(const Constant high,
                             node.view().ConstantAt(node.input(2)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> lows, RealValues(low));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> highs, RealValues(high));
    if (lows.size() != 1 || highs.size() != 1) {
      return absl::UnimplementedError("it has a range for each channel");
    }
    options.low = lows[0];
    options.high = highs[0];
  } else {
    OPTFARM_ASSIGN_OR_RETURN(options.low,
                             graph::GetFloatOr(node.def(), "min", -6));
    OPTFARM_ASSIGN_OR_RETURN(options.high,
                             graph::GetFloatOr(node.def(), "max", 6));
  }
  OPTFARM_ASSIGN_OR_RETURN(const int64_t bits,
                           graph::GetIntOr(node.def(), "num_bits", 8));
  OPTFARM_ASSIGN_OR_RETURN(options.narrow_range,
                           graph::GetBoolOr(node.def(), "narrow_range", false));
  options.count = static_cast<int>(bits);
  node.Emit(BuiltinOperator::FAKE_QUANT, {node.Tensor(0)}, options);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"FakeQuantWithMinMaxArgs", RaiseFakeQuant},
    {"FakeQuantWithMinMaxVars", RaiseFakeQuant},
    {"QuantizeLinear", RaiseQuantize},
    {"DequantizeLinear", RaiseDequantize},
};

}  // namespace

absl::Span<const RaisingRow> QuantizationRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
