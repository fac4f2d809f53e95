// Activation functions. ONNX has most of them; younger ones are written with
// older ops where the opset does not have them yet.

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lite_rounding.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

using tensorflow::DataType;

// Calls function(x) in x's order.
template <typename Function>
absl::Status Composed(NodeRaiser& n, Function function) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  n.Set(function(n.In(0, order)), order);
  return absl::OkStatus();
}

absl::Status Plain(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) { return n.Emit(n.onnx_op(), {x}); });
}

absl::Status Relu6(NodeRaiser& n) {
  const DataType type = n.InType(0);
  return Composed(n, [&](ValueId x) {
    return n.Emit("Clip", {x, n.Number(type, 0), n.Number(type, 6)});
  });
}

absl::Status WithAlpha(NodeRaiser& n) {
  const bool is_leaky = n.node().op() == "LeakyRelu";
  OPTFARM_ASSIGN_OR_RETURN(
      const float alpha,
      graph::GetFloatOr(n.def(), "alpha", is_leaky ? 0.2f : 1.0f));
  return Composed(n, [&](ValueId x) {
    return n.Emit(n.onnx_op(), {x}, {{"alpha", alpha}});
  });
}

absl::Status HardSigmoid(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(n.def(), "alpha", 0.2f));
  OPTFARM_ASSIGN_OR_RETURN(const float beta,
                           graph::GetFloatOr(n.def(), "beta", 0.5f));
  return Composed(n, [&](ValueId x) {
    return n.Emit("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
  });
}

// An op of its own since opset 14.
absl::Status HardSwish(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    if (n.opset() >= 14) {
      const ValueId y = n.Emit("HardSwish", {x});
      for (const char* name : {"input_scale", "output_scale"}) {
        const auto scale = graph::GetFloatOr(n.def(), name, 0);
        if (!scale.ok() || !(*scale > 0)) continue;
        n.graph().model()->AddNote(y, absl::StrCat(kNotePrefix, name),
                                   absl::StrFormat("%.9g", *scale));
      }
      return y;
    }
    const ValueId gate =
        n.Emit("HardSigmoid", {x}, {{"alpha", 1.0f / 6.0f}, {"beta", 0.5f}});
    return n.Emit("Mul", {x, gate});
  });
}

// x * sigmoid(alpha * x)
absl::Status Swish(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(n.def(), "alpha", 1.0f));
  return Composed(n, [&](ValueId x) {
    const ValueId scaled =
        alpha == 1.0f ? x : n.Emit("Mul", {x, n.Number(n.InType(0), alpha)});
    return n.Emit("Mul", {x, n.Emit("Sigmoid", {scaled})});
  });
}

absl::Status ScaledElu(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(n.def(), "alpha", 1.0f));
  OPTFARM_ASSIGN_OR_RETURN(const float gamma,
                           graph::GetFloatOr(n.def(), "gamma", 1.0f));
  return Composed(n, [&](ValueId x) {
    return n.Emit("Selu", {x}, {{"alpha", alpha}, {"gamma", gamma}});
  });
}

absl::Status Shrink(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const float threshold,
                           graph::GetFloatOr(n.def(), "lambd", 0.5f));
  OPTFARM_ASSIGN_OR_RETURN(const float bias,
                           graph::GetFloatOr(n.def(), "bias", 0.0f));
  return Composed(n, [&](ValueId x) {
    return n.Emit("Shrink", {x}, {{"lambd", threshold}, {"bias", bias}});
  });
}

// An op of its own since opset 18.
absl::Status Mish(NodeRaiser& n) {
  return Composed(n, [&](ValueId x) {
    if (n.opset() >= 18) return n.Emit("Mish", {x});
    return n.Emit("Mul", {x, n.Emit("Tanh", {n.Emit("Softplus", {x})})});
  });
}

// x / 2 * (1 + erf(x / sqrt(2))), or the tanh that comes near it; an op of its
// own since opset 20.
absl::Status Gelu(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const bool approximate,
                           graph::GetBoolOr(n.def(), "approximate", false));
  const DataType type = n.InType(0);
  return Composed(n, [&](ValueId x) {
    if (n.opset() >= 20) {
      return n.Emit(
          "Gelu", {x},
          {{"approximate", std::string(approximate ? "tanh" : "none")}});
    }
    ValueId bent;
    if (approximate) {
      const ValueId cube = n.Emit("Mul", {n.Emit("Mul", {x, x}), x});
      const ValueId sum =
          n.Emit("Add", {x, n.Emit("Mul", {cube, n.Number(type, 0.044715)})});
      bent = n.Emit(
          "Tanh", {n.Emit("Mul", {sum, n.Number(type, std::sqrt(2 / M_PI))})});
    } else {
      bent =
          n.Emit("Erf", {n.Emit("Div", {x, n.Number(type, std::sqrt(2.0))})});
    }
    const ValueId gate = n.Emit("Add", {bent, n.Number(type, 1)});
    return n.Emit("Mul", {n.Emit("Mul", {x, gate}), n.Number(type, 0.5)});
  });
}

// Along the graph's last axis.
absl::Status Softmax(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(1));
  const AxisOrder order = n.OrderOf(0);
  const int64_t axis =
      order.empty() ? -1
                    : AxisInFile(order, static_cast<int>(order.size()) - 1);
  n.Set(n.Emit(n.onnx_op(), {n.In(0, order)}, {{"axis", axis}}), order);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"Relu", Plain, "Relu"},
    {"Relu6", Relu6},
    {"Sigmoid", Plain, "Sigmoid"},
    {"Tanh", Plain, "Tanh"},
    {"Elu", WithAlpha, "Elu"},
    {"Celu", WithAlpha, "Celu"},
    {"LeakyRelu", WithAlpha, "LeakyRelu"},
    {"ThresholdedRelu", WithAlpha, "ThresholdedRelu"},
    {"Selu", Plain, "Selu"},
    {"ScaledElu", ScaledElu},
    {"Shrink", Shrink},
    {"Softplus", Plain, "Softplus"},
    {"Softsign", Plain, "Softsign"},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", HardSwish},
    {"Swish", Swish},
    {"Mish", Mish},
    {"Gelu", Gelu},
    {"Softmax", Softmax, "Softmax"},
    {"LogSoftmax", Softmax, "LogSoftmax"},
};

}  // namespace

absl::Span<const RaisingRow> ActivationRaisings() { return kRows; }

}  // namespace optfarm::formats
