// Ops that work element by element, on one tensor or on several whose shapes
// are broadcast. They follow the order of their inputs' axes.

#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"
#include "engine/graph/attr.h"
#include "engine/graph/function_body.h"
#include "engine/graph/spatial_attrs.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// The inputs as they go into a broadcasting op.
struct Operands {
  std::vector<ValueId> values;
  AxisOrder order;
};

absl::StatusOr<Operands> Broadcast(NodeRaiser& n, int count) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(count));
  std::vector<int> inputs(static_cast<size_t>(count));
  std::iota(inputs.begin(), inputs.end(), 0);
  Operands operands;
  operands.order = CommonOrder(n, inputs);
  for (int input : inputs) {
    OPTFARM_ASSIGN_OR_RETURN(const ValueId value,
                             BroadcastIn(n, input, operands.order));
    operands.values.push_back(value);
  }
  return operands;
}

// --- One tensor --------------------------------------------------------------

absl::Status Unary(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  n.Set(n.Emit(n.onnx_op(), {n.In(0, order)}), order);
  return absl::OkStatus();
}

// Nothing is emitted: the tensor itself.
absl::Status PassOn(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  n.Set(n.In(0, order), order);
  return absl::OkStatus();
}

absl::Status PassAllOn(NodeRaiser& n) {
  for (int i = 0; i < n.input_count(); ++i) {
    const AxisOrder order = n.OrderOf(i);
    n.SetPort(i, n.In(i, order), order);
  }
  return absl::OkStatus();
}

// Calls function(x) in x's order.
template <typename Function>
absl::Status Composed(NodeRaiser& n, Function function) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  n.Set(function(n.In(0, order)), order);
  return absl::OkStatus();
}

absl::Status Rsqrt(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Reciprocal", {n.Emit("Sqrt", {x})});
  });
}

absl::Status Square(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) { return n.Emit("Mul", {x, x}); });
}

absl::Status Expm1(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Sub", {n.Emit("Exp", {x}), n.Number(n.InType(0), 1)});
  });
}

absl::Status Log1p(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Log", {n.Emit("Add", {x, n.Number(n.InType(0), 1)})});
  });
}

absl::Status IsFinite(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Not",
                  {n.Emit("Or", {n.Emit("IsNaN", {x}), n.Emit("IsInf", {x})})});
  });
}

absl::Status ZerosLike(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Expand", {n.Number(n.InType(0), 0), n.Emit("Shape", {x})});
  });
}

absl::Status OnesLike(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    return n.Emit("Expand", {n.Number(n.InType(0), 1), n.Emit("Shape", {x})});
  });
}

absl::Status Cast(NodeRaiser& n) {
  const DataType to = n.OutType();
  if (OnnxTypeOf(to) == 0 || OnnxTypeOf(n.InType(0)) == 0) {
    return absl::UnimplementedError(absl::StrCat(
        "ONNX has no conversion from ", graph::DataTypeName(n.InType(0)),
        " to ", graph::DataTypeName(to)));
  }
  return Composed(n, [&](ValueId x) { return n.Cast(x, n.InType(0), to); });
}

// Between quantized values and the integers that they are.
absl::Status Bitcast(NodeRaiser& n) {
  if (OnnxTypeOf(n.InType(0)) != OnnxTypeOf(n.OutType())) {
    return absl::UnimplementedError(absl::StrCat(
        "ONNX cannot read the bits of ", graph::DataTypeName(n.InType(0)),
        " as ", graph::DataTypeName(n.OutType())));
  }
  return PassOn(n);
}

// --- Several -----------------------------------------------------------------

absl::Status Binary(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
  n.Set(n.Emit(n.onnx_op(), std::move(in.values)), in.order);
  return absl::OkStatus();
}

// Older runtimes have these for 32 bits and more.
absl::Status Extreme(NodeRaiser& n) {
  const DataType type = n.InType(0);
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
  const bool is_narrow =
      type == tensorflow::DT_INT8 || type == tensorflow::DT_UINT8 ||
      type == tensorflow::DT_INT16 || type == tensorflow::DT_UINT16;
  if (!is_narrow) {
    n.Set(n.Emit(n.onnx_op(), std::move(in.values)), in.order);
    return absl::OkStatus();
  }
  for (ValueId& value : in.values) {
    value = n.Cast(value, type, tensorflow::DT_INT32);
  }
  const ValueId wide = n.Emit(n.onnx_op(), std::move(in.values));
  n.Set(n.Cast(wide, tensorflow::DT_INT32, type), in.order);
  return absl::OkStatus();
}

// The named op, and then what `function` does with the result.
template <typename Function>
absl::Status After(NodeRaiser& n, Function function) {
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
  n.Set(function(n.Emit(n.onnx_op(), in.values), in.values), in.order);
  return absl::OkStatus();
}

absl::Status Squared(NodeRaiser& n) {
  return After(n, [&](ValueId x, const std::vector<ValueId>&) {
    return n.Emit("Mul", {x, x});
  });
}

absl::Status Negated(NodeRaiser& n) {
  return After(n, [&](ValueId x, const std::vector<ValueId>&) {
    return n.Emit("Not", {x});
  });
}

bool IsFloating(DataType type) {
  return type == tensorflow::DT_FLOAT || type == tensorflow::DT_DOUBLE ||
         type == tensorflow::DT_HALF || type == tensorflow::DT_BFLOAT16;
}

// Floats are rounded down; of integers the remainder tells where truncation
// went up.
absl::Status FloorDiv(NodeRaiser& n) {
  const DataType type = n.InType(0);
  return After(n, [&](ValueId quotient, const std::vector<ValueId>& in) {
    if (IsFloating(type)) return n.Emit("Floor", {quotient});
    const ValueId zero = n.Number(type, 0);
    const ValueId remainder =
        n.Emit("Sub", {in[0], n.Emit("Mul", {quotient, in[1]})});
    const ValueId is_inexact =
        n.Emit("Not", {n.Emit("Equal", {remainder, zero})});
    const ValueId has_other_sign = n.Emit(
        "Xor",
        {n.Emit("Less", {remainder, zero}), n.Emit("Less", {in[1], zero})});
    const ValueId is_up = n.Emit("And", {is_inexact, has_other_sign});
    return n.Emit("Sub", {quotient, n.Cast(is_up, tensorflow::DT_BOOL, type)});
  });
}

// x - floor(x / y) * y; ONNX's integer Mod has the divisor's sign as well.
absl::Status FloorMod(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
  if (!IsFloating(n.InType(0))) {
    n.Set(n.Emit("Mod", std::move(in.values)), in.order);
    return absl::OkStatus();
  }
  const ValueId floor = n.Emit("Floor", {n.Emit("Div", in.values)});
  n.Set(n.Emit("Sub", {in.values[0], n.Emit("Mul", {floor, in.values[1]})}),
        in.order);
  return absl::OkStatus();
}

// The remainder of truncation: C's fmod.
absl::Status TruncateMod(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
  n.Set(n.Emit("Mod", std::move(in.values), {{"fmod", int64_t{1}}}), in.order);
  return absl::OkStatus();
}

absl::Status DivNoNan(NodeRaiser& n) {
  return After(n, [&](ValueId quotient, const std::vector<ValueId>& in) {
    const ValueId zero = n.Number(n.InType(0), 0);
    return n.Emit("Where", {n.Emit("Equal", {in[1], zero}), zero, quotient});
  });
}

absl::Status AddN(NodeRaiser& n) {
  if (n.input_count() == 1) return PassOn(n);
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, n.input_count()));
  n.Set(n.Emit("Sum", std::move(in.values)), in.order);
  return absl::OkStatus();
}

// The condition of TensorFlow's older Select may be a vector that chooses rows.
absl::Status Select(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(3));
  const std::string branches =
      graph::GetStringOr(n.def(), graph::kBranchesAttr, "").value_or("");
  if (!branches.empty() && n.InShape(0) == graph::PartialShape::Scalar()) {
    n.Set(n.graph().model()->AddChoice(branches, n.In(0), n.In(1), n.In(2),
                                       n.OutType()));
    return absl::OkStatus();
  }
  const bool may_choose_rows = n.node().op() == "Select";
  if (may_choose_rows) {
    OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(1));
    OPTFARM_ASSIGN_OR_RETURN(const int condition_rank, n.Rank(0));
    if (condition_rank == 1 && rank > 1) {
      std::vector<int64_t> axes(static_cast<size_t>(rank - 1));
      std::iota(axes.begin(), axes.end(), 1);
      n.Set(n.Emit("Where", {n.Unsqueeze(n.In(0), axes), n.In(1), n.In(2)}));
      return absl::OkStatus();
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 3));
  n.Set(n.Emit("Where", std::move(in.values)), in.order);
  return absl::OkStatus();
}

// A vector along the channels, which are the last axis or the second.
absl::Status BiasAdd(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(2));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_nchw, graph::IsNchw(n.def()));
  if (!is_nchw) {
    OPTFARM_ASSIGN_OR_RETURN(Operands in, Broadcast(n, 2));
    n.Set(n.Emit("Add", std::move(in.values)), in.order);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const int rank, n.Rank(0));
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 1);
  const ValueId bias = rank > 2 ? n.Unsqueeze(n.In(1), axes) : n.In(1);
  n.Set(n.Emit("Add", {n.In(0), bias}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Abs", Unary, "Abs"},
    {"Neg", Unary, "Neg"},
    {"Exp", Unary, "Exp"},
    {"Log", Unary, "Log"},
    {"Sqrt", Unary, "Sqrt"},
    {"Sin", Unary, "Sin"},
    {"Cos", Unary, "Cos"},
    {"Tan", Unary, "Tan"},
    {"Asin", Unary, "Asin"},
    {"Acos", Unary, "Acos"},
    {"Atan", Unary, "Atan"},
    {"Sinh", Unary, "Sinh"},
    {"Cosh", Unary, "Cosh"},
    {"Asinh", Unary, "Asinh"},
    {"Acosh", Unary, "Acosh"},
    {"Atanh", Unary, "Atanh"},
    {"Ceil", Unary, "Ceil"},
    {"Floor", Unary, "Floor"},
    {"Round", Unary, "Round"},
    {"Rint", Unary, "Round"},
    {"Sign", Unary, "Sign"},
    {"Erf", Unary, "Erf"},
    {"Inv", Unary, "Reciprocal"},
    {"Reciprocal", Unary, "Reciprocal"},
    {"LogicalNot", Unary, "Not"},
    {"IsNan", Unary, "IsNaN"},
    {"IsInf", Unary, "IsInf"},
    {"IsFinite", IsFinite},
    {"Rsqrt", Rsqrt},
    {"Square", Square},
    {"Expm1", Expm1},
    {"Log1p", Log1p},
    {"ZerosLike", ZerosLike},
    {"OnesLike", OnesLike},
    {"Cast", Cast},
    {"Bitcast", Bitcast},
    {"Identity", PassOn},
    {"IdentityN", PassAllOn},
    {"Snapshot", PassOn},
    {"StopGradient", PassOn},
    {"PreventGradient", PassOn},
    {"CheckNumerics", PassOn},
    {"EnsureShape", PassOn},
    {"GuaranteeConst", PassOn},
    {"PlaceholderWithDefault", PassOn},

    {"Add", Binary, "Add"},
    {"AddV2", Binary, "Add"},
    {"Sub", Binary, "Sub"},
    {"Mul", Binary, "Mul"},
    {"RealDiv", Binary, "Div"},
    {"Div", Binary, "Div"},
    {"TruncateDiv", Binary, "Div"},
    {"FloorDiv", FloorDiv, "Div"},
    {"DivNoNan", DivNoNan, "Div"},
    {"FloorMod", FloorMod},
    {"Mod", TruncateMod},
    {"TruncateMod", TruncateMod},
    {"Maximum", Extreme, "Max"},
    {"Minimum", Extreme, "Min"},
    {"Pow", Binary, "Pow"},
    {"SquaredDifference", Squared, "Sub"},
    {"Equal", Binary, "Equal"},
    {"NotEqual", Negated, "Equal"},
    {"Less", Binary, "Less"},
    {"LessEqual", Binary, "LessOrEqual"},
    {"Greater", Binary, "Greater"},
    {"GreaterEqual", Binary, "GreaterOrEqual"},
    {"LogicalAnd", Binary, "And"},
    {"LogicalOr", Binary, "Or"},
    {"LogicalXor", Binary, "Xor"},
    {"PRelu", Binary, "PRelu"},
    {"AddN", AddN},
    {"Select", Select},
    {"SelectV2", Select},
    {"BiasAdd", BiasAdd},
    {"BiasAddV1", BiasAdd},
};

}  // namespace

absl::Span<const RaisingRow> ElementwiseRaisings() { return kRows; }

}  // namespace optfarm::formats
