// Functions of one element or of several at the same place: arithmetic,
// comparison, logic, conversion.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/broadcasting.h"
#include "engine/formats/onnx/element_types.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/tensors.h"

namespace optfarm::formats {
namespace {

// Template parameters cannot be literals.
#define OPTFARM_OP(op) constexpr char k##op[] = #op
OPTFARM_OP(Abs);
OPTFARM_OP(Acos);
OPTFARM_OP(Acosh);
OPTFARM_OP(Asin);
OPTFARM_OP(Asinh);
OPTFARM_OP(Atan);
OPTFARM_OP(Atanh);
OPTFARM_OP(BitwiseAnd);
OPTFARM_OP(BitwiseOr);
OPTFARM_OP(BitwiseXor);
OPTFARM_OP(Ceil);
OPTFARM_OP(Cos);
OPTFARM_OP(Cosh);
OPTFARM_OP(Equal);
OPTFARM_OP(Erf);
OPTFARM_OP(Exp);
OPTFARM_OP(Floor);
OPTFARM_OP(Greater);
OPTFARM_OP(GreaterEqual);
OPTFARM_OP(Invert);
OPTFARM_OP(IsNan);
OPTFARM_OP(Less);
OPTFARM_OP(LessEqual);
OPTFARM_OP(Log);
OPTFARM_OP(LogicalAnd);
OPTFARM_OP(LogicalNot);
OPTFARM_OP(LogicalOr);
OPTFARM_OP(Maximum);
OPTFARM_OP(Minimum);
OPTFARM_OP(Neg);
OPTFARM_OP(NotEqual);
OPTFARM_OP(Reciprocal);
OPTFARM_OP(Rint);
OPTFARM_OP(Sign);
OPTFARM_OP(Sin);
OPTFARM_OP(Sinh);
OPTFARM_OP(Sqrt);
OPTFARM_OP(Tan);
#undef OPTFARM_OP
constexpr char kAdd[] = "Add";

template <const char* kOp>
absl::Status LowerUnary(NodeLowering& n) {
  n.SetOutput(0, n.Add(kOp, {n.input(0)}));
  return absl::OkStatus();
}

template <const char* kOp>
absl::Status LowerBinary(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pair, BroadcastInputs(n));
  n.SetOutput(0, n.Add(kOp, {pair.first, pair.second}));
  return absl::OkStatus();
}

// Any number of inputs, from the first on.
template <const char* kOp>
Endpoint Folded(NodeLowering& n) {
  const std::vector<Endpoint> inputs = n.inputs();
  if (inputs.empty()) return n.input(0);
  Endpoint y = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) y = n.Add(kOp, {y, inputs[i]});
  return inputs.size() == 1 ? n.Add("Identity", {y}) : y;
}

template <const char* kOp>
absl::Status LowerVariadic(NodeLowering& n) {
  n.SetOutput(0, Folded<kOp>(n));
  return absl::OkStatus();
}

absl::Status LowerMean(NodeLowering& n) {
  const Endpoint sum = Folded<kAdd>(n);
  const double count = static_cast<double>(n.inputs().size());
  n.SetOutput(0, n.Add("RealDiv", {sum, n.ScalarLike(sum, count)}));
  return absl::OkStatus();
}

// Base and exponent may differ in type; the result has the base's.
absl::Status LowerPow(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(auto pair, BroadcastInputs(n));
  auto [x, y] = pair;
  const DataType type = n.dtype(x);
  const auto exponent = n.KnownFloats(y);
  if (IsFloatingType(type) && exponent.has_value() && exponent->size() == 1 &&
      n.shape(y).has_rank() && n.shape(y).rank() <= 1) {
    // Squares and roots are what models take powers for.
    const float e = (*exponent)[0];
    if (n.shape(y).rank() == 0 ||
        (n.shape(x).has_rank() && n.shape(x).rank() >= n.shape(y).rank())) {
      if (e == 2.0f || e == 0.5f) {
        n.SetOutput(0, n.Add(e == 2.0f ? "Square" : "Sqrt", {x}));
        return absl::OkStatus();
      }
    }
  }
  if (!IsFloatingType(type) && IsFloatingType(n.dtype(y))) {
    const Endpoint power = n.Add("Pow", {n.Cast(x, tensorflow::DT_DOUBLE),
                                         n.Cast(y, tensorflow::DT_DOUBLE)});
    n.SetOutput(0, n.Cast(power, type));
    return absl::OkStatus();
  }
  n.SetOutput(0, n.Add("Pow", {x, n.Cast(y, type)}));
  return absl::OkStatus();
}

absl::Status LowerMod(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pair, BroadcastInputs(n));
  // The sign of the dividend as in C, or of the divisor.
  const bool as_in_c = n.Int("fmod", 0) != 0;
  n.SetOutput(0, n.Add(as_in_c ? "TruncateMod" : "FloorMod",
                       {pair.first, pair.second}));
  return absl::OkStatus();
}

absl::Status LowerBitShift(NodeLowering& n) {
  const std::string direction = n.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return absl::InvalidArgumentError(
        absl::StrCat("direction '", direction, "' is neither LEFT nor RIGHT"));
  }
  n.SetOutput(0, n.Add(direction == "LEFT" ? "LeftShift" : "RightShift",
                       {n.input(0), n.input(1)}));
  return absl::OkStatus();
}

absl::Status LowerIsInf(NodeLowering& n) {
  const Endpoint x = n.input(0);
  const bool negative = n.Int("detect_negative", 1) != 0;
  const bool positive = n.Int("detect_positive", 1) != 0;
  Endpoint y = n.Add("IsInf", {x});
  if (negative != positive) {
    const Endpoint zero = n.ScalarLike(x, 0);
    y = n.Add("LogicalAnd",
              {y, n.Add(positive ? "Greater" : "Less", {x, zero})});
  } else if (!negative) {
    y = n.Add("LogicalAnd", {y, n.builder().Scalar(tensorflow::DT_BOOL, 0)});
  }
  n.SetOutput(0, y);
  return absl::OkStatus();
}

absl::Status LowerWhere(NodeLowering& n) {
  n.SetOutput(0, n.Add("SelectV2", {n.input(0), n.input(1), n.input(2)}));
  return absl::OkStatus();
}

Endpoint Converted(NodeLowering& n, Endpoint x, DataType type) {
  return n.dtype(x) == type ? n.Add("Identity", {x}) : n.Cast(x, type);
}

absl::Status LowerCast(NodeLowering& n) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType type, ElementTypeAttr(n, "to", 0));
  n.SetOutput(0, Converted(n, n.input(0), type));
  return absl::OkStatus();
}

absl::Status LowerCastLike(NodeLowering& n) {
  n.SetOutput(0, Converted(n, n.input(0), n.dtype(n.input(1))));
  return absl::OkStatus();
}

constexpr LoweringRow kRows[] = {
    {"Abs", LowerUnary<kAbs>},
    {"Acos", LowerUnary<kAcos>},
    {"Acosh", LowerUnary<kAcosh>},
    {"And", LowerBinary<kLogicalAnd>},
    {"Asin", LowerUnary<kAsin>},
    {"Asinh", LowerUnary<kAsinh>},
    {"Atan", LowerUnary<kAtan>},
    {"Atanh", LowerUnary<kAtanh>},
    {"BitShift", LowerBitShift},
    {"BitwiseAnd", LowerBinary<kBitwiseAnd>},
    {"BitwiseNot", LowerUnary<kInvert>},
    {"BitwiseOr", LowerBinary<kBitwiseOr>},
    {"BitwiseXor", LowerBinary<kBitwiseXor>},
    {"Cast", LowerCast},
    {"CastLike", LowerCastLike},
    {"Ceil", LowerUnary<kCeil>},
    {"Cos", LowerUnary<kCos>},
    {"Cosh", LowerUnary<kCosh>},
    {"Equal", LowerBinary<kEqual>},
    {"Erf", LowerUnary<kErf>},
    {"Exp", LowerUnary<kExp>},
    {"Floor", LowerUnary<kFloor>},
    {"Greater", LowerBinary<kGreater>},
    {"GreaterOrEqual", LowerBinary<kGreaterEqual>},
    {"IsInf", LowerIsInf},
    {"IsNaN", LowerUnary<kIsNan>},
    {"Less", LowerBinary<kLess>},
    {"LessOrEqual", LowerBinary<kLessEqual>},
    {"Log", LowerUnary<kLog>},
    {"Max", LowerVariadic<kMaximum>},
    {"Mean", LowerMean},
    {"Min", LowerVariadic<kMinimum>},
    {"Mod", LowerMod},
    {"Neg", LowerUnary<kNeg>},
    {"Not", LowerUnary<kLogicalNot>},
    {"Or", LowerBinary<kLogicalOr>},
    {"Pow", LowerPow},
    {"Reciprocal", LowerUnary<kReciprocal>},
    {"Round", LowerUnary<kRint>},
    {"Sign", LowerUnary<kSign>},
    {"Sin", LowerUnary<kSin>},
    {"Sinh", LowerUnary<kSinh>},
    {"Sqrt", LowerUnary<kSqrt>},
    {"Sum", LowerVariadic<kAdd>},
    {"Tan", LowerUnary<kTan>},
    {"Where", LowerWhere},
    {"Xor", LowerBinary<kNotEqual>},
};

}  // namespace

absl::Span<const LoweringRow> ElementwiseLowerings() { return kRows; }

}  // namespace optfarm::formats
