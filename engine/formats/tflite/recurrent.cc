// LSTM over a sequence, in one direction. Its state is a variable: it starts
// from what the run before left.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/svdf.h"
#include "engine/formats/tflite/weights.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// Inputs of the operator. Gates come in the order input, forget, cell, output.
constexpr int kInputWeights = 1;
constexpr int kRecurrentWeights = 5;
constexpr int kPeephole = 9;
constexpr int kBias = 12;
constexpr int kProjection = 16;
constexpr int kProjectionBias = 17;
constexpr int kOutputState = 18;
constexpr int kCellState = 19;
constexpr int kLayerNorm = 20;
// Intermediate tensor with the scale of the hidden values before a projection.
constexpr int kHiddenScale = 4;

absl::StatusOr<std::string> FunctionName(ActivationFunctionType function) {
  switch (function) {
    case ActivationFunctionType::NONE:
      return std::string("none");
    case ActivationFunctionType::RELU:
      return std::string("relu");
    case ActivationFunctionType::RELU6:
      return std::string("relu6");
    case ActivationFunctionType::TANH:
      return std::string("tanh");
    default:
      return Unsupported(absl::StrCat(
          "activation function ", EnumNameActivationFunctionType(function)));
  }
}

Value EmptyVector(OpLowering& c, absl::string_view suffix) {
  Constant empty;
  empty.type = tensorflow::DT_FLOAT;
  empty.shape = {0};
  return c.Const(suffix, empty);
}

// Real weights, also where they stand behind a DEQUANTIZE.
Value RealFloats(OpLowering& c, int i) {
  const Value value = c.Real(i);
  return c.status().ok() ? c.Cast(value, tensorflow::DT_FLOAT, "float") : value;
}

// A bias of integers has the scale of its gate's accumulator, and the
// recurrent weights add to the same sum: the first product's scale counts.
absl::StatusOr<Value> RealBias(OpLowering& c, int i, int weights) {
  if (!c.Has(i) || !c.Has(weights)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", c.Has(i) ? weights : i, " is missing"));
  }
  if (c.in(i).type() != TensorType::INT32) return RealFloats(c, i);
  const auto* parameters = c.in(i).quantization();
  Quantization quantization;
  if (parameters != nullptr && parameters->scale() != nullptr &&
      parameters->scale()->size() > 0) {
    OPTFARM_ASSIGN_OR_RETURN(quantization,
                             c.subgraph().QuantizationAt(c.InputId(i)));
  } else {
    if (!IsQuantized(c.in(0)) || !IsQuantized(c.in(weights))) {
      return absl::InvalidArgumentError("a bias of integers has no scale");
    }
    OPTFARM_ASSIGN_OR_RETURN(const Quantization input,
                             c.subgraph().QuantizationAt(c.InputId(0)));
    OPTFARM_ASSIGN_OR_RETURN(quantization,
                             c.subgraph().QuantizationAt(c.InputId(weights)));
    for (float& scale : quantization.scale) scale *= input.scale[0];
    for (int64_t& zero : quantization.zero_point) zero = 0;
  }
  return c.subgraph().DequantizedBy(
      quantization, 0, 8, c.Stored(i),
      absl::StrCat(c.subgraph().NameOf(c.InputId(i)), "/dequantized"));
}

Value Joined(OpLowering& c, std::vector<Value> parts,
             absl::string_view suffix) {
  parts.push_back(c.Int(absl::StrCat(suffix, "/axis"), 0));
  return c.Add("ConcatV2", suffix, parts);
}

// The gates of one kind of weights; `first` is 1 where they are coupled.
Value Gates(OpLowering& c, int input, int first, absl::string_view suffix) {
  std::vector<Value> parts;
  for (int i = first; i < 4; ++i) parts.push_back(RealFloats(c, input + i));
  return Joined(c, parts, suffix);
}

Value Optional(OpLowering& c, int i, absl::string_view suffix) {
  return c.Has(i) ? RealFloats(c, i) : EmptyVector(c, suffix);
}

struct StateScales {
  float cell = 0, hidden = 0, output = 0;
  int64_t hidden_zero = 0, output_zero = 0;
};

// What the integer kernel rounds to. All 0 where the state is real.
absl::StatusOr<StateScales> ReadScales(OpLowering& c) {
  StateScales scales;
  if (!IsQuantized(c.in(kOutputState)) || !IsQuantized(c.in(kCellState))) {
    return scales;
  }
  SubgraphLowering& subgraph = c.subgraph();
  OPTFARM_ASSIGN_OR_RETURN(const Quantization cell,
                           subgraph.QuantizationAt(c.InputId(kCellState)));
  OPTFARM_ASSIGN_OR_RETURN(const Quantization output,
                           subgraph.QuantizationAt(c.InputId(kOutputState)));
  scales.cell = cell.scale[0];
  scales.output = output.scale[0];
  scales.output_zero = output.zero_point[0];
  const auto* intermediates = c.op().intermediates();
  if (c.Has(kProjection) && intermediates != nullptr &&
      intermediates->size() > kHiddenScale &&
      intermediates->Get(kHiddenScale) >= 0 &&
      IsQuantized(subgraph.tensor(intermediates->Get(kHiddenScale)))) {
    OPTFARM_ASSIGN_OR_RETURN(
        const Quantization hidden,
        subgraph.QuantizationAt(intermediates->Get(kHiddenScale)));
    scales.hidden = hidden.scale[0];
    scales.hidden_zero = hidden.zero_point[0];
  }
  return scales;
}

// The state under its own scale, for the next run.
absl::Status Keep(OpLowering& c, int input, const Value& real) {
  const int tensor = c.InputId(input);
  Value stored = real;
  if (IsQuantized(c.subgraph().tensor(tensor))) {
    OPTFARM_ASSIGN_OR_RETURN(
        stored,
        c.subgraph().Quantized(
            tensor, real, absl::StrCat(c.subgraph().NameOf(tensor), "/next")));
  }
  return c.subgraph().AssignState(tensor, stored);
}

absl::Status LowerSequenceLstm(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_UnidirectionalSequenceLSTMOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->diagonal_recurrent_tensors()) {
    return Unsupported("diagonal recurrent weights");
  }
  if (!c.Has(kOutputState) || !c.Has(kCellState)) {
    return absl::InvalidArgumentError("has no state");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           FunctionName(options->fused_activation_function()));
  const bool couples_gates = !c.Has(kInputWeights);
  const int first = couples_gates ? 1 : 0;
  const Value input_weights = Gates(c, kInputWeights, first, "input_weights");
  const Value recurrent_weights =
      Gates(c, kRecurrentWeights, first, "recurrent_weights");
  std::vector<Value> biases;
  for (int i = first; i < 4; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Value bias,
                             RealBias(c, kBias + i, kInputWeights + i));
    biases.push_back(bias);
  }
  const Value bias = Joined(c, biases, "bias");
  Value peephole = EmptyVector(c, "peephole");
  if (c.Has(kPeephole + 1)) {
    // A coupled layer has no weights for the gate that is not there.
    const Value forget = RealFloats(c, kPeephole + 1);
    peephole = Joined(c,
                      {c.Has(kPeephole) ? RealFloats(c, kPeephole) : forget,
                       forget, RealFloats(c, kPeephole + 2)},
                      "peephole");
  }
  Value projection_bias = EmptyVector(c, "projection_bias");
  if (c.Has(kProjectionBias)) {
    OPTFARM_ASSIGN_OR_RETURN(projection_bias,
                             RealBias(c, kProjectionBias, kProjection));
  }
  Value layer_norm = EmptyVector(c, "layer_norm");
  if (c.Has(kLayerNorm + 1)) {
    const Value forget = RealFloats(c, kLayerNorm + 1);
    layer_norm =
        Joined(c,
               {c.Has(kLayerNorm) ? RealFloats(c, kLayerNorm) : forget, forget,
                RealFloats(c, kLayerNorm + 2), RealFloats(c, kLayerNorm + 3)},
               "layer_norm");
  }
  OPTFARM_ASSIGN_OR_RETURN(const StateScales scales, ReadScales(c));
  const Value layer = c.Add(
      "LiteLstmSequence", "lstm",
      {RealFloats(c, 0), RealFloats(c, kOutputState), RealFloats(c, kCellState),
       input_weights, recurrent_weights, bias, peephole,
       Optional(c, kProjection, "projection"), projection_bias, layer_norm},
      [&](tensorflow::NodeDef* node) {
        graph::SetBool(node, "time_major", options->time_major());
        graph::SetBool(node, "couples_gates", couples_gates);
        graph::SetString(node, "activation", function);
        graph::SetFloat(node, "cell_clip", options->cell_clip());
        graph::SetFloat(node, "projection_clip", options->proj_clip());
        if (scales.cell == 0) return;
        graph::SetFloat(node, "cell_scale", scales.cell);
        graph::SetFloat(node, "hidden_scale", scales.hidden);
        graph::SetInt(node, "hidden_zero_point", scales.hidden_zero);
        graph::SetFloat(node, "output_scale", scales.output);
        graph::SetInt(node, "output_zero_point", scales.output_zero);
      });
  c.Pin(layer);
  c.SetReal(0, layer);
  OPTFARM_RETURN_IF_ERROR(Keep(c, kOutputState, c.Port(layer, 1)));
  return Keep(c, kCellState, c.Port(layer, 2));
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, 5, LowerSequenceLstm},
    {BuiltinOperator::SVDF, 5, LowerSvdf},
};

}  // namespace

absl::Span<const OperatorRow> RecurrentRows() { return kRows; }

}  // namespace optfarm::tflite
