// Elementwise arithmetic, comparison, selection and conversion.

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/activations.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

absl::Status LowerUnary(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, c.Add(row.op, row.op, {c.Real(0)}));
  return absl::OkStatus();
}

absl::Status LowerBinary(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, c.Add(row.op, row.op, {c.Real(0), c.Real(1)}));
  return absl::OkStatus();
}

template <typename Options>
ActivationFunctionType ActivationOf(const Options* options) {
  return options == nullptr ? ActivationFunctionType::NONE
                            : options->fused_activation_function();
}

ActivationFunctionType FusedActivation(const Operator& op) {
  switch (op.builtin_options_type()) {
    case BuiltinOptions::AddOptions:
      return ActivationOf(op.builtin_options_as_AddOptions());
    case BuiltinOptions::SubOptions:
      return ActivationOf(op.builtin_options_as_SubOptions());
    case BuiltinOptions::MulOptions:
      return ActivationOf(op.builtin_options_as_MulOptions());
    case BuiltinOptions::DivOptions:
      return ActivationOf(op.builtin_options_as_DivOptions());
    default:
      return ActivationFunctionType::NONE;
  }
}

// Whether XNNPACK adds the inputs as integers.
bool IsSumOfBytes(const OpLowering& c) {
  // Of the scales of an input and the result.
  constexpr float kLeastRatio = 1.0f / 1024, kMostRatio = 256;
  const auto fits = [&](int i) {
    if (!c.Has(i) || !c.HasBytes(c.in(i))) return false;
    const auto from = c.QuantizationOfInput(i), to = c.QuantizationOfOutput(0);
    const float ratio =
        from.ok() && to.ok() ? from->scale[0] / to->scale[0] : 0;
    return ratio >= kLeastRatio && ratio < kMostRatio;
  };
  return c.HasBytes(c.out(0)) && fits(0) && fits(1);
}

absl::Status LowerActivatedBinary(const OperatorRow& row, OpLowering& c) {
  const Value result = c.Add(row.op, row.op, {c.Real(0), c.Real(1)});
  const bool rounds_up =
      c.kind().code == BuiltinOperator::ADD && IsSumOfBytes(c);
  c.SetReal(0, Activated(c, result, FusedActivation(c.op())),
            [&](tensorflow::NodeDef* node) {
              if (rounds_up) graph::SetString(node, "rounding", "half_up");
            });
  return absl::OkStatus();
}

// Integers are divided towards zero.
absl::Status LowerDiv(const OperatorRow&, OpLowering& c) {
  const Value a = c.Real(0), b = c.Real(1);
  const bool is_whole = a.type == tensorflow::DT_INT32;
  const Value result =
      c.Add(is_whole ? "TruncateDiv" : "RealDiv", "quotient", {a, b});
  c.SetReal(0, Activated(c, result, FusedActivation(c.op())));
  return absl::OkStatus();
}

// The larger or smaller of quantized values is that of what they stand for.
absl::Status LowerExtremum(const OperatorRow& row, OpLowering& c) {
  if (c.InputFitsOutput(0, 0) && c.InputFitsOutput(1, 0)) {
    c.SetStored(0, c.Add(row.op, row.op, {c.Stored(0), c.Stored(1)}));
    return absl::OkStatus();
  }
  return LowerBinary(row, c);
}

absl::Status LowerAddN(const OperatorRow&, OpLowering& c) {
  std::vector<Value> inputs;
  for (int i = 0; i < c.input_count(); ++i) inputs.push_back(c.Real(i));
  if (inputs.empty()) return absl::InvalidArgumentError("has no inputs");
  c.SetReal(0, c.Add("AddN", "sum", inputs));
  return absl::OkStatus();
}

absl::Status LowerCast(const OperatorRow&, OpLowering& c) {
  if (c.output_count() != 1) {
    return absl::InvalidArgumentError("must have one output");
  }
  const Value input = c.Stored(0);
  const tensorflow::DataType type = TypeOf(c.out(0));
  if (type == tensorflow::DT_INVALID) {
    return Unsupported(
        absl::StrCat("a conversion to ", EnumNameTensorType(c.out(0).type())));
  }
  c.SetStored(0, c.Cast(input, type, "Cast"));
  return absl::OkStatus();
}

absl::Status LowerBitcast(const OperatorRow&, OpLowering& c) {
  const tensorflow::DataType type = TypeOf(c.out(0));
  c.SetStored(0, c.Add("Bitcast", "Bitcast", {c.Stored(0)},
                       [&](tensorflow::NodeDef* node) {
                         graph::SetType(node, "type", type);
                       }));
  return absl::OkStatus();
}

// The condition has the shape of the others, or a value for each row.
absl::Status LowerSelect(const OperatorRow& row, OpLowering& c) {
  if (c.InputFitsOutput(1, 0) && c.InputFitsOutput(2, 0)) {
    c.SetStored(0,
                c.Add(row.op, row.op, {c.Stored(0), c.Stored(1), c.Stored(2)}));
    return absl::OkStatus();
  }
  c.SetReal(0, c.Add(row.op, row.op, {c.Stored(0), c.Real(1), c.Real(2)}));
  return absl::OkStatus();
}

absl::Status LowerZerosLike(const OperatorRow&, OpLowering& c) {
  c.SetStored(0, c.Add("ZerosLike", "zeros", {c.Stored(0)}));
  return absl::OkStatus();
}

absl::Status LowerComplexPart(const OperatorRow& row, OpLowering& c) {
  c.SetStored(0, c.Add(row.op, row.op, {c.Stored(0)}));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::ADD, 7, LowerActivatedBinary, "AddV2"},
    {BuiltinOperator::SUB, 7, LowerActivatedBinary, "Sub"},
    {BuiltinOperator::MUL, 9, LowerActivatedBinary, "Mul"},
    {BuiltinOperator::DIV, 4, LowerDiv},
    {BuiltinOperator::ADD_N, 2, LowerAddN},
    {BuiltinOperator::MAXIMUM, 6, LowerExtremum, "Maximum"},
    {BuiltinOperator::MINIMUM, 6, LowerExtremum, "Minimum"},
    {BuiltinOperator::POW, 3, LowerBinary, "Pow"},
    {BuiltinOperator::SQUARED_DIFFERENCE, 4, LowerBinary, "SquaredDifference"},
    {BuiltinOperator::FLOOR_DIV, 5, LowerBinary, "FloorDiv"},
    {BuiltinOperator::FLOOR_MOD, 4, LowerBinary, "FloorMod"},
    {BuiltinOperator::ATAN2, 2, LowerBinary, "Atan2"},
    {BuiltinOperator::BITWISE_XOR, 2, LowerBinary, "BitwiseXor"},
    {BuiltinOperator::RIGHT_SHIFT, 2, LowerBinary, "RightShift"},
    {BuiltinOperator::EQUAL, 6, LowerBinary, "Equal"},
    {BuiltinOperator::NOT_EQUAL, 6, LowerBinary, "NotEqual"},
    {BuiltinOperator::LESS, 6, LowerBinary, "Less"},
    {BuiltinOperator::LESS_EQUAL, 6, LowerBinary, "LessEqual"},
    {BuiltinOperator::GREATER, 6, LowerBinary, "Greater"},
    {BuiltinOperator::GREATER_EQUAL, 6, LowerBinary, "GreaterEqual"},
    {BuiltinOperator::LOGICAL_AND, 2, LowerBinary, "LogicalAnd"},
    {BuiltinOperator::LOGICAL_OR, 2, LowerBinary, "LogicalOr"},
    {BuiltinOperator::LOGICAL_NOT, 2, LowerUnary, "LogicalNot"},
    {BuiltinOperator::ABS, 6, LowerUnary, "Abs"},
    {BuiltinOperator::NEG, 3, LowerUnary, "Neg"},
    {BuiltinOperator::SIGN, 3, LowerUnary, "Sign"},
    {BuiltinOperator::EXP, 3, LowerUnary, "Exp"},
    {BuiltinOperator::LOG, 3, LowerUnary, "Log"},
    {BuiltinOperator::SQRT, 3, LowerUnary, "Sqrt"},
    {BuiltinOperator::RSQRT, 4, LowerUnary, "Rsqrt"},
    {BuiltinOperator::SIN, 2, LowerUnary, "Sin"},
    {BuiltinOperator::COS, 2, LowerUnary, "Cos"},
    {BuiltinOperator::SQUARE, 2, LowerUnary, "Square"},
    {BuiltinOperator::FLOOR, 2, LowerUnary, "Floor"},
    {BuiltinOperator::CEIL, 2, LowerUnary, "Ceil"},
    {BuiltinOperator::ROUND, 2, LowerUnary, "Round"},
    {BuiltinOperator::CAST, 8, LowerCast},
    {BuiltinOperator::BITCAST, 2, LowerBitcast},
    {BuiltinOperator::SELECT, 5, LowerSelect, "Select"},
    {BuiltinOperator::SELECT_V2, 4, LowerSelect, "SelectV2"},
    {BuiltinOperator::ZEROS_LIKE, 3, LowerZerosLike},
    {BuiltinOperator::REAL, 2, LowerComplexPart, "Real"},
    {BuiltinOperator::IMAG, 2, LowerComplexPart, "Imag"},
    {BuiltinOperator::COMPLEX_ABS, 2, LowerComplexPart, "ComplexAbs"},
};

}  // namespace

absl::Span<const OperatorRow> ArithmeticRows() { return kRows; }

}  // namespace optfarm::tflite
