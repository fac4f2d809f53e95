#include "engine/formats/tflite/activations.h"

#include "absl/strings/str_cat.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {

Value Clamped(OpLowering& c, const Value& value, float least, float most) {
  const Value raised =
      c.Add("Maximum", "raised", {value, c.Float("least", least)});
  return c.Add("Minimum", "clamped", {raised, c.Float("most", most)});
}

Value Activated(OpLowering& c, const Value& value,
                ActivationFunctionType function) {
  switch (function) {
    case ActivationFunctionType::NONE:
      return value;
    case ActivationFunctionType::RELU:
      return c.Add("Relu", "Relu", {value});
    case ActivationFunctionType::RELU6:
      return c.Add("Relu6", "Relu6", {value});
    case ActivationFunctionType::RELU_N1_TO_1:
      return Clamped(c, value, -1.0f, 1.0f);
    case ActivationFunctionType::TANH:
      return c.Add("Tanh", "Tanh", {value});
    default:
      c.Fail(Unsupported(absl::StrCat(
          "activation function ", EnumNameActivationFunctionType(function))));
      return {};
  }
}

namespace {

// One op from real to real.
absl::Status LowerUnary(const OperatorRow& row, OpLowering& c) {
  c.SetReal(0, c.Add(row.op, row.op, {c.Real(0)}));
  return absl::OkStatus();
}

absl::Status LowerHardSwish(const OperatorRow&, OpLowering& c) {
  // A step of the input is to be less than this many of the result.
  constexpr float kMostRatio = 128;
  float input_scale = 0, output_scale = 0;
  if (c.HasBytes(c.in(0)) && c.HasBytes(c.out(0))) {
    const auto from = c.QuantizationOfInput(0), to = c.QuantizationOfOutput(0);
    if (from.ok() && to.ok() && from->scale[0] / to->scale[0] < kMostRatio) {
      input_scale = from->scale[0];
      output_scale = to->scale[0];
    }
  }
  c.SetReal(0, c.Add("HardSwish", "HardSwish", {c.Real(0)},
                     [&](tensorflow::NodeDef* node) {
                       if (input_scale == 0) return;
                       graph::SetFloat(node, "input_scale", input_scale);
                       graph::SetFloat(node, "output_scale", output_scale);
                     }));
  return absl::OkStatus();
}

absl::Status LowerReluN1To1(const OperatorRow&, OpLowering& c) {
  c.SetReal(0, Clamped(c, c.Real(0), -1.0f, 1.0f));
  return absl::OkStatus();
}

absl::Status LowerRelu0To1(const OperatorRow&, OpLowering& c) {
  c.SetReal(0, Clamped(c, c.Real(0), 0.0f, 1.0f));
  return absl::OkStatus();
}

absl::Status LowerSoftmax(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SoftmaxOptions();
  const float beta = options == nullptr ? 1.0f : options->beta();
  Value value = c.Real(0);
  if (beta != 1.0f) {
    value = c.Add("Mul", "scaled", {value, c.Float("beta", beta)});
  }
  c.SetReal(0, c.Add("Softmax", "Softmax", {value}));
  return absl::OkStatus();
}

absl::Status LowerLeakyRelu(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_LeakyReluOptions();
  const float alpha = options == nullptr ? 0.0f : options->alpha();
  c.SetReal(0, c.Add("LeakyRelu", "LeakyRelu", {c.Real(0)},
                     [&](tensorflow::NodeDef* node) {
                       graph::SetFloat(node, "alpha", alpha);
                     }));
  return absl::OkStatus();
}

absl::Status LowerGelu(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_GeluOptions();
  const bool is_approximate = options != nullptr && options->approximate();
  c.SetReal(0,
            c.Add("Gelu", "Gelu", {c.Real(0)}, [&](tensorflow::NodeDef* node) {
              graph::SetBool(node, "approximate", is_approximate);
            }));
  return absl::OkStatus();
}

// Slopes are constants of shape [1, 1, channels] or so.
absl::Status LowerPRelu(const OperatorRow&, OpLowering& c) {
  c.SetReal(0, c.Add("PRelu", "PRelu", {c.Real(0), c.Real(1)}));
  return absl::OkStatus();
}

// x / sqrt(sum of squares along the last dimension).
absl::Status LowerL2Normalization(const OperatorRow&, OpLowering& c) {
  constexpr float kLeastNorm = 1e-6f;
  const Value x = c.Real(0);
  const Value squares = c.Add("Square", "squares", {x});
  const Value sum = c.Add("Sum", "sum", {squares, c.Int("axis", -1)},
                          [](tensorflow::NodeDef* node) {
                            graph::SetBool(node, "keep_dims", true);
                          });
  const Value norm =
      c.Add("Maximum", "norm",
            {c.Add("Sqrt", "root", {sum}), c.Float("least_norm", kLeastNorm)});
  c.SetReal(0, c.Add("RealDiv", "quotient", {x, norm}));
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::RELU, 4, LowerUnary, "Relu"},
    {BuiltinOperator::RELU6, 4, LowerUnary, "Relu6"},
    {BuiltinOperator::RELU_N1_TO_1, 3, LowerReluN1To1},
    {BuiltinOperator::RELU_0_TO_1, 3, LowerRelu0To1},
    {BuiltinOperator::LOGISTIC, 4, LowerUnary, "Sigmoid"},
    {BuiltinOperator::TANH, 4, LowerUnary, "Tanh"},
    {BuiltinOperator::ELU, 3, LowerUnary, "Elu"},
    {BuiltinOperator::HARD_SWISH, 3, LowerHardSwish},
    {BuiltinOperator::LOG_SOFTMAX, 3, LowerUnary, "LogSoftmax"},
    {BuiltinOperator::SOFTMAX, 4, LowerSoftmax},
    {BuiltinOperator::LEAKY_RELU, 3, LowerLeakyRelu},
    {BuiltinOperator::GELU, 3, LowerGelu},
    {BuiltinOperator::PRELU, 3, LowerPRelu},
    {BuiltinOperator::L2_NORMALIZATION, 3, LowerL2Normalization},
};

}  // namespace

absl::Span<const OperatorRow> ActivationRows() { return kRows; }

}  // namespace optfarm::tflite
