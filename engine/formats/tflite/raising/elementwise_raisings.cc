// Arithmetic element by element, comparisons, activations, casts.

#include <tflite/schema_generated.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using tflite::BuiltinOperator;
using tflite::TensorType;

std::vector<graph::Endpoint> AllInputs(const NodeRaiser& node) {
  std::vector<graph::Endpoint> inputs;
  for (int i = 0; i < node.input_count(); ++i) inputs.push_back(node.input(i));
  return inputs;
}

// An operator that takes the node's inputs as they are.
absl::Status RaiseElementwise(NodeRaiser& node) {
  LayerRequest request;
  request.rule = node.rule();
  request.inputs = AllInputs(node);
  const Layer layer = node.Begin(request);
  node.Finish(layer, node.builtin(), layer.inputs);
  return absl::OkStatus();
}

// The same with an activation behind it.
absl::Status RaiseArithmetic(NodeRaiser& node) {
  LayerRequest request;
  request.rule = node.rule();
  request.inputs = AllInputs(node);
  const tensorflow::DataType dtype = node.view().TypeOf(node.output());
  request.takes_activation = dtype == tensorflow::DT_FLOAT;
  const Layer layer = node.Begin(request);
  node.Finish(layer, node.builtin(), layer.inputs);
  return absl::OkStatus();
}

// A sum of any number of tensors, two by two: AddN takes equal shapes only
// and has no quantized form.
absl::Status RaiseAddN(NodeRaiser& node) {
  TensorId sum = node.Tensor(0);
  for (int i = 1; i < node.input_count(); ++i) {
    if (i + 1 == node.input_count()) {
      node.Emit(BuiltinOperator::ADD, {sum, node.Tensor(i)});
      return absl::OkStatus();
    }
    sum = node.EmitBetween(BuiltinOperator::ADD, {sum, node.Tensor(i)}, sum,
                           node.ShapeOfOutput());
  }
  node.SetOutput(sum);
  return absl::OkStatus();
}

// Scales that the format prescribes for an output between 0 and 1, or between
// -1 and 1.
Quantization UnitScale(TensorType type) {
  if (type == TensorType::INT16) return {{1.0f / 32768}, {0}};
  return {{1.0f / 256}, {type == TensorType::UINT8 ? 0 : -128}};
}
Quantization SignedUnitScale(TensorType type) {
  if (type == TensorType::INT16) return {{1.0f / 32768}, {0}};
  return {{1.0f / 128}, {type == TensorType::UINT8 ? 128 : 0}};
}

// The type that the node's input has when it is quantized.
TensorType TwinType(NodeRaiser& node) {
  const std::optional<TensorId> twin = node.tensors().Twin(node.input(0));
  return twin.has_value() ? node.draft().tensor(*twin).type
                          : TensorType::FLOAT32;
}

absl::Status RaiseFixed(NodeRaiser& node) {
  LayerRequest request;
  request.rule = ScaleRule::kFixed;
  request.inputs = {node.input(0)};
  request.fixed = node.builtin() == BuiltinOperator::TANH
                      ? SignedUnitScale(TwinType(node))
                      : UnitScale(TwinType(node));
  const Layer layer = node.Begin(request);
  node.Finish(layer, node.builtin(), layer.inputs);
  return absl::OkStatus();
}

// Normalizes along `axis`, which operators do for the last one only.
absl::Status RaiseSoftmax(NodeRaiser& node) {
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  if (shape.has_rank() && shape.rank() == 0) {
    return absl::UnimplementedError("its input is a scalar");
  }
  const bool is_log = node.builtin() == BuiltinOperator::LOG_SOFTMAX;
  LayerRequest request;
  const TensorType type = TwinType(node);
  request.rule = is_log && type == TensorType::INT16 ? ScaleRule::kFloatOnly
                                                     : ScaleRule::kFixed;
  request.inputs = {node.input(0)};
  request.fixed = is_log ? Quantization{{16.0f / 256},
                                        {type == TensorType::UINT8 ? 255 : 127}}
                         : UnitScale(type);
  const Layer layer = node.Begin(request);
  OperatorOptions options;
  options.beta = 1;
  node.Finish(layer, node.builtin(), layer.inputs, options);
  return absl::OkStatus();
}

absl::Status RaiseLeakyRelu(NodeRaiser& node) {
  LayerRequest request;
  request.rule = ScaleRule::kFree;
  request.inputs = {node.input(0)};
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.alpha,
                           graph::GetFloatOr(node.def(), "alpha", 0.2f));
  const Layer layer = node.Begin(request);
  node.Finish(layer, BuiltinOperator::LEAKY_RELU, layer.inputs, options);
  return absl::OkStatus();
}

absl::Status RaiseGelu(NodeRaiser& node) {
  LayerRequest request;
  request.rule = ScaleRule::kFree;
  request.inputs = {node.input(0)};
  OperatorOptions options;
  OPTFARM_ASSIGN_OR_RETURN(options.approximate,
                           graph::GetBoolOr(node.def(), "approximate", false));
  const Layer layer = node.Begin(request);
  node.Finish(layer, BuiltinOperator::GELU, layer.inputs, options);
  return absl::OkStatus();
}

// x * sigmoid(alpha * x).
absl::Status RaiseSwish(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(node.def(), "alpha", 1.0f));
  const TensorId x = node.Tensor(0);
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  TensorId scaled = x;
  if (alpha != 1) {
    scaled = node.EmitBetween(BuiltinOperator::MUL, {x, node.Float(alpha)}, x,
                              shape);
  }
  const TensorId gate =
      node.EmitBetween(BuiltinOperator::LOGISTIC, {scaled}, x, shape);
  node.Emit(BuiltinOperator::MUL, {x, gate});
  return absl::OkStatus();
}

// log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), which does not overflow.
TensorId EmitSoftplus(NodeRaiser& node, TensorId x) {
  const graph::PartialShape shape = node.draft().tensor(x).shape;
  const auto step = [&](BuiltinOperator op, std::vector<TensorId> inputs) {
    return node.EmitBetween(op, std::move(inputs), x, shape);
  };
  const TensorId size = step(BuiltinOperator::ABS, {x});
  const TensorId small =
      step(BuiltinOperator::EXP, {step(BuiltinOperator::NEG, {size})});
  const TensorId tail =
      step(BuiltinOperator::LOG,
           {step(BuiltinOperator::ADD, {small, node.Float(1)})});
  return step(BuiltinOperator::ADD, {step(BuiltinOperator::RELU, {x}), tail});
}

absl::Status RaiseSoftplus(NodeRaiser& node) {
  node.SetOutput(EmitSoftplus(node, node.Tensor(0)));
  return absl::OkStatus();
}

absl::Status RaiseMish(NodeRaiser& node) {
  const TensorId x = node.Tensor(0);
  const TensorId gate = node.EmitBetween(
      BuiltinOperator::TANH, {EmitSoftplus(node, x)}, x, node.ShapeOfInput(0));
  node.Emit(BuiltinOperator::MUL, {x, gate});
  return absl::OkStatus();
}

// scale * (alpha * elu(x) + (1 - alpha) * max(x, 0)), since elu(x) is x where x
// is positive.
absl::Status RaiseSelu(NodeRaiser& node) {
  constexpr float kScale = 1.0507009873554804934193349852946f;
  constexpr float kAlpha = 1.6732632423543772848170429916717f;
  const TensorId x = node.Tensor(0);
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  const auto part = [&](BuiltinOperator op, float factor) {
    return node.EmitBetween(
        BuiltinOperator::MUL,
        {node.EmitBetween(op, {x}, x, shape), node.Float(factor)}, x, shape);
  };
  const TensorId whole = part(BuiltinOperator::ELU, kScale * kAlpha);
  const TensorId linear = part(BuiltinOperator::RELU, kScale * (1 - kAlpha));
  node.Emit(BuiltinOperator::ADD, {whole, linear});
  return absl::OkStatus();
}

// min(max(alpha * x + beta, 0), 1).
absl::Status RaiseHardSigmoid(NodeRaiser& node) {
  OPTFARM_ASSIGN_OR_RETURN(const float alpha,
                           graph::GetFloatOr(node.def(), "alpha", 0.2f));
  OPTFARM_ASSIGN_OR_RETURN(const float beta,
                           graph::GetFloatOr(node.def(), "beta", 0.5f));
  const TensorId x = node.Tensor(0);
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  const TensorId scaled =
      node.EmitBetween(BuiltinOperator::MUL, {x, node.Float(alpha)}, x, shape);
  OperatorOptions relu;
  relu.activation = Activation::kRelu;
  const TensorId raised = node.EmitBetween(
      BuiltinOperator::ADD, {scaled, node.Float(beta)}, x, shape, relu);
  node.Emit(BuiltinOperator::MINIMUM, {raised, node.Float(1)});
  return absl::OkStatus();
}

// Slopes of shape [..., channels]; the operator wants no batch dimension.
absl::Status RaisePRelu(NodeRaiser& node) {
  const graph::PartialShape& slopes = node.ShapeOfInput(1);
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  if (!node.view().IsConstant(node.input(1)) || !slopes.is_static() ||
      !shape.has_rank() || slopes.rank() > shape.rank()) {
    // max(x, 0) + slope * min(x, 0).
    const TensorId x = node.Tensor(0);
    const TensorId high =
        node.EmitBetween(BuiltinOperator::RELU, {x}, x, shape);
    const TensorId low = node.EmitBetween(BuiltinOperator::MINIMUM,
                                          {x, node.Float(0)}, x, shape);
    const TensorId scaled = node.EmitBetween(
        BuiltinOperator::MUL, {low, node.Tensor(1)}, x, node.ShapeOfOutput());
    node.Emit(BuiltinOperator::ADD, {high, scaled});
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(Constant alpha,
                           node.view().ConstantAt(node.input(1)));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> values, RealValues(alpha));
  std::vector<int64_t> dims = alpha.dims;
  while (static_cast<int>(dims.size()) + 1 > shape.rank() && !dims.empty() &&
         dims[0] == 1) {
    dims.erase(dims.begin());
  }
  while (static_cast<int>(dims.size()) + 1 < shape.rank()) {
    dims.insert(dims.begin(), 1);
  }
  node.Emit(BuiltinOperator::PRELU,
            {node.Tensor(0), node.Floats(dims, values)});
  return absl::OkStatus();
}

absl::Status RaiseReciprocal(NodeRaiser& node) {
  node.Emit(BuiltinOperator::DIV, {node.Float(1), node.Tensor(0)});
  return absl::OkStatus();
}

absl::Status RaiseCast(NodeRaiser& node) {
  const TensorId from = node.Tensor(0);
  const TensorId made = node.tensors().NewTensor(node.output());
  if (node.draft().tensor(from).type == node.draft().tensor(made).type) {
    node.SetOutput(from);
    return absl::OkStatus();
  }
  node.SetOutput(made);
  node.draft().AddOperator(BuiltinOperator::CAST, {from}, {made});
  return absl::OkStatus();
}

// The error function, by Abramowitz and Stegun's 7.1.26 (below 1.5e-7):
// sign(x) (1 - p(t) exp(-x^2)) with t = 1 / (1 + 0.3275911 |x|).
absl::Status RaiseErf(NodeRaiser& node) {
  const TensorId x = node.Tensor(0);
  const graph::PartialShape& shape = node.ShapeOfInput(0);
  const auto step = [&](BuiltinOperator op, std::vector<TensorId> inputs) {
    return node.EmitBetween(op, std::move(inputs), x, shape);
  };
  const TensorId size = step(BuiltinOperator::ABS, {x});
  const TensorId below =
      step(BuiltinOperator::ADD,
           {step(BuiltinOperator::MUL, {size, node.Float(0.3275911f)}),
            node.Float(1)});
  const TensorId t = step(BuiltinOperator::DIV, {node.Float(1), below});
  TensorId sum = node.Float(1.061405429f);
  for (const float coefficient :
       {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) {
    sum = step(BuiltinOperator::ADD,
               {step(BuiltinOperator::MUL, {t, sum}), node.Float(coefficient)});
  }
  const TensorId decay =
      step(BuiltinOperator::EXP,
           {step(BuiltinOperator::NEG, {step(BuiltinOperator::MUL, {x, x})})});
  const TensorId tail =
      step(BuiltinOperator::MUL, {step(BuiltinOperator::MUL, {t, sum}), decay});
  const TensorId positive = step(BuiltinOperator::SUB, {node.Float(1), tail});
  // x / max(|x|, tiny) is the sign, also in runtimes without SIGN.
  const TensorId sign =
      step(BuiltinOperator::DIV,
           {x, step(BuiltinOperator::MAXIMUM, {size, node.Float(1e-30f)})});
  node.Emit(BuiltinOperator::MUL, {sign, positive});
  return absl::OkStatus();
}

constexpr ScaleRule kFree = ScaleRule::kFree;
constexpr ScaleRule kSame = ScaleRule::kSame;

constexpr RaisingRow kRows[] = {
    {"Add", RaiseArithmetic, BuiltinOperator::ADD, kFree},
    {"AddV2", RaiseArithmetic, BuiltinOperator::ADD, kFree},
    {"BiasAdd", RaiseArithmetic, BuiltinOperator::ADD, kFree},
    {"Sub", RaiseArithmetic, BuiltinOperator::SUB, kFree},
    {"Mul", RaiseArithmetic, BuiltinOperator::MUL, kFree},
    {"RealDiv", RaiseArithmetic, BuiltinOperator::DIV},
    {"Div", RaiseArithmetic, BuiltinOperator::DIV},
    {"AddN", RaiseAddN},
    {"FloorDiv", RaiseElementwise, BuiltinOperator::FLOOR_DIV},
    {"FloorMod", RaiseElementwise, BuiltinOperator::FLOOR_MOD},
    {"Maximum", RaiseElementwise, BuiltinOperator::MAXIMUM, kSame},
    {"Minimum", RaiseElementwise, BuiltinOperator::MINIMUM, kSame},
    {"Pow", RaiseElementwise, BuiltinOperator::POW},
    {"SquaredDifference", RaiseElementwise,
     BuiltinOperator::SQUARED_DIFFERENCE},
    {"Abs", RaiseElementwise, BuiltinOperator::ABS},
    {"Ceil", RaiseElementwise, BuiltinOperator::CEIL},
    {"Cos", RaiseElementwise, BuiltinOperator::COS},
    {"Elu", RaiseElementwise, BuiltinOperator::ELU, kFree},
    {"Exp", RaiseElementwise, BuiltinOperator::EXP},
    {"Floor", RaiseElementwise, BuiltinOperator::FLOOR},
    {"HardSwish", RaiseElementwise, BuiltinOperator::HARD_SWISH, kFree},
    {"Log", RaiseElementwise, BuiltinOperator::LOG},
    {"Neg", RaiseElementwise, BuiltinOperator::NEG},
    {"Relu", RaiseElementwise, BuiltinOperator::RELU, kFree},
    {"Relu6", RaiseElementwise, BuiltinOperator::RELU6, kFree},
    {"Round", RaiseElementwise, BuiltinOperator::ROUND},
    {"Rint", RaiseElementwise, BuiltinOperator::ROUND},
    {"Rsqrt", RaiseElementwise, BuiltinOperator::RSQRT},
    {"Sign", RaiseElementwise, BuiltinOperator::SIGN},
    {"Sin", RaiseElementwise, BuiltinOperator::SIN},
    {"Sqrt", RaiseElementwise, BuiltinOperator::SQRT},
    {"Square", RaiseElementwise, BuiltinOperator::SQUARE},
    {"Reciprocal", RaiseReciprocal},
    {"Inv", RaiseReciprocal},
    {"Erf", RaiseErf},
    {"Sigmoid", RaiseFixed, BuiltinOperator::LOGISTIC},
    {"Tanh", RaiseFixed, BuiltinOperator::TANH},
    {"Softmax", RaiseSoftmax, BuiltinOperator::SOFTMAX},
    {"LogSoftmax", RaiseSoftmax, BuiltinOperator::LOG_SOFTMAX},
    {"LeakyRelu", RaiseLeakyRelu},
    {"Gelu", RaiseGelu},
    {"Swish", RaiseSwish},
    {"Softplus", RaiseSoftplus},
    {"Mish", RaiseMish},
    {"Selu", RaiseSelu},
    {"HardSigmoid", RaiseHardSigmoid},
    {"PRelu", RaisePRelu},
    {"Cast", RaiseCast},
    {"Equal", RaiseElementwise, BuiltinOperator::EQUAL},
    {"NotEqual", RaiseElementwise, BuiltinOperator::NOT_EQUAL},
    {"Greater", RaiseElementwise, BuiltinOperator::GREATER},
    {"GreaterEqual", RaiseElementwise, BuiltinOperator::GREATER_EQUAL},
    {"Less", RaiseElementwise, BuiltinOperator::LESS},
    {"LessEqual", RaiseElementwise, BuiltinOperator::LESS_EQUAL},
    {"LogicalAnd", RaiseElementwise, BuiltinOperator::LOGICAL_AND},
    {"LogicalOr", RaiseElementwise, BuiltinOperator::LOGICAL_OR},
    {"LogicalNot", RaiseElementwise, BuiltinOperator::LOGICAL_NOT},
};

}  // namespace

absl::Span<const RaisingRow> ElementwiseRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
