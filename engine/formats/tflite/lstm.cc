// LSTM layers: over a sequence in one direction or in both, and a step of one.
// Their state is a variable: it starts from what the run before left.

#include "engine/formats/tflite/lstm.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/sequences.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// Where a direction's inputs stand among those of the operator. Gates come in
// the order input, forget, cell, output.
struct LstmInputs {
  int input_weights = 1;
  int recurrent_weights = 5;
  int peephole = 9;
  int bias = 12;
  int projection = 16;
  int projection_bias = 17;
  int output_state = 18;
  int cell_state = 19;
  // -1: the operator has none.
  int layer_norm = 20;
  int auxiliary_weights = -1;
};

constexpr LstmInputs kOneDirection;
constexpr LstmInputs kForward = {1, 5, 9, 12, 16, 17, 35, 36, -1, 40};
constexpr LstmInputs kBackward = {18, 22, 26, 29, 33, 34, 37, 38, -1, 44};
constexpr int kAuxiliaryInput = 39;
// Intermediate tensor with the scale of the hidden values before a projection.
constexpr int kHiddenScale = 4;

struct LstmOptions {
  ActivationFunctionType function = ActivationFunctionType::TANH;
  float cell_clip = 0, projection_clip = 0;
  bool is_time_major = false;
};

absl::StatusOr<std::string> FunctionName(ActivationFunctionType function) {
  switch (function) {
    case ActivationFunctionType::NONE:
      return std::string("none");
    case ActivationFunctionType::RELU:
      return std::string("relu");
    case ActivationFunctionType::RELU6:
      return std::string("relu6");
    case ActivationFunctionType::RELU_N1_TO_1:
      return std::string("relu_n1_to_1");
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
absl::StatusOr<StateScales> ReadScales(OpLowering& c, const LstmInputs& in) {
  StateScales scales;
  if (!IsQuantized(c.in(in.output_state)) ||
      !IsQuantized(c.in(in.cell_state))) {
    return scales;
  }
  SubgraphLowering& subgraph = c.subgraph();
  OPTFARM_ASSIGN_OR_RETURN(const Quantization cell,
                           subgraph.QuantizationAt(c.InputId(in.cell_state)));
  OPTFARM_ASSIGN_OR_RETURN(const Quantization output,
                           subgraph.QuantizationAt(c.InputId(in.output_state)));
  scales.cell = cell.scale[0];
  scales.output = output.scale[0];
  scales.output_zero = output.zero_point[0];
  const auto* intermediates = c.op().intermediates();
  if (c.Has(in.projection) && intermediates != nullptr &&
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

Value Weights(OpLowering& c, const LstmInputs& in, int first) {
  const Value weights = Gates(c, in.input_weights, first, "input_weights");
  if (in.auxiliary_weights < 0 || !c.Has(in.auxiliary_weights + 1)) {
    return weights;
  }
  // Both inputs of a linked layer stand side by side.
  return c.Add(
      "ConcatV2", "linked_weights",
      {weights, Gates(c, in.auxiliary_weights, first, "auxiliary_weights"),
       c.Int("linked_weights/axis", 1)});
}

absl::StatusOr<Value> Biases(OpLowering& c, const LstmInputs& in, int first) {
  std::vector<Value> biases;
  for (int i = first; i < 4; ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Value bias,
                             RealBias(c, in.bias + i, in.input_weights + i));
    biases.push_back(bias);
  }
  return Joined(c, biases, "bias");
}

// Weights from the cells to input, forget and output gate. A coupled layer has
// none for the gate that is not there.
Value Peephole(OpLowering& c, const LstmInputs& in) {
  if (!c.Has(in.peephole + 1)) return EmptyVector(c, "peephole");
  const Value forget = RealFloats(c, in.peephole + 1);
  return Joined(c,
                {c.Has(in.peephole) ? RealFloats(c, in.peephole) : forget,
                 forget, RealFloats(c, in.peephole + 2)},
                "peephole");
}

Value LayerNorm(OpLowering& c, const LstmInputs& in) {
  if (in.layer_norm < 0 || !c.Has(in.layer_norm + 1)) {
    return EmptyVector(c, "layer_norm");
  }
  const Value forget = RealFloats(c, in.layer_norm + 1);
  return Joined(
      c,
      {c.Has(in.layer_norm) ? RealFloats(c, in.layer_norm) : forget, forget,
       RealFloats(c, in.layer_norm + 2), RealFloats(c, in.layer_norm + 3)},
      "layer_norm");
}

// One direction over `x`; the state is kept.
absl::StatusOr<Value> RunDirection(OpLowering& c, const LstmInputs& in,
                                   const LstmOptions& options, const Value& x) {
  if (!c.Has(in.output_state) || !c.Has(in.cell_state)) {
    return absl::InvalidArgumentError("has no state");
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           FunctionName(options.function));
  const bool couples_gates = !c.Has(in.input_weights);
  const int first = couples_gates ? 1 : 0;
  OPTFARM_ASSIGN_OR_RETURN(const Value bias, Biases(c, in, first));
  Value projection_bias = EmptyVector(c, "projection_bias");
  if (c.Has(in.projection_bias)) {
    OPTFARM_ASSIGN_OR_RETURN(projection_bias,
                             RealBias(c, in.projection_bias, in.projection));
  }
  OPTFARM_ASSIGN_OR_RETURN(const StateScales scales, ReadScales(c, in));
  const Value layer =
      c.Add("LiteLstmSequence", "lstm",
            {x, RealFloats(c, in.output_state), RealFloats(c, in.cell_state),
             Weights(c, in, first),
             Gates(c, in.recurrent_weights, first, "recurrent_weights"), bias,
             Peephole(c, in), Optional(c, in.projection, "projection"),
             projection_bias, LayerNorm(c, in)},
            [&](tensorflow::NodeDef* node) {
              graph::SetBool(node, "time_major", options.is_time_major);
              graph::SetBool(node, "couples_gates", couples_gates);
              graph::SetString(node, "activation", function);
              graph::SetFloat(node, "cell_clip", options.cell_clip);
              graph::SetFloat(node, "projection_clip", options.projection_clip);
              if (scales.cell == 0) return;
              graph::SetFloat(node, "cell_scale", scales.cell);
              graph::SetFloat(node, "hidden_scale", scales.hidden);
              graph::SetInt(node, "hidden_zero_point", scales.hidden_zero);
              graph::SetFloat(node, "output_scale", scales.output);
              graph::SetInt(node, "output_zero_point", scales.output_zero);
            });
  c.Pin(layer);
  OPTFARM_RETURN_IF_ERROR(KeepState(c, in.output_state, c.Port(layer, 1)));
  OPTFARM_RETURN_IF_ERROR(KeepState(c, in.cell_state, c.Port(layer, 2)));
  return layer;
}

// The matrix whose columns belong to the input and to the state, a block of
// rows for each gate: input, cell, forget, output.
Value BasicWeights(OpLowering& c, const Value& all, int64_t first_column,
                   int64_t columns, int64_t cells, absl::string_view suffix) {
  std::vector<Value> gates;
  for (const int64_t gate : {0, 2, 1, 3}) {
    const std::string name = absl::StrCat(suffix, "/gate", gates.size());
    const bool is_bias = columns == 0;
    std::vector<int64_t> begin = {gate * cells}, size = {cells};
    if (!is_bias) {
      begin.push_back(first_column);
      size.push_back(columns);
    }
    gates.push_back(
        c.Add("Slice", name,
              {all, c.IntVector(absl::StrCat(name, "/begin"), begin),
               c.IntVector(absl::StrCat(name, "/size"), size)}));
  }
  return Joined(c, gates, suffix);
}

// The older cell: five inputs, all weights in one matrix.
absl::Status LowerBasicCell(OpLowering& c) {
  constexpr int kState = 1, kWeights = 2, kBias = 3, kCells = 4;
  for (int i = 0; i <= kCells; ++i) {
    if (!c.Has(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  if (c.output_count() < 2) {
    return absl::InvalidArgumentError("has fewer than 2 outputs");
  }
  const std::vector<int64_t> shape = ShapeOf(c.in(kWeights));
  const std::vector<int64_t> state = ShapeOf(c.in(kState));
  if (shape.size() != 2 || state.size() != 2 || state[1] <= 0 ||
      shape[0] % 4 != 0 || shape[0] / 4 != state[1] || shape[1] <= state[1]) {
    return absl::InvalidArgumentError(
        "its weights do not fit the size of its state");
  }
  const int64_t cells = state[1], inputs = shape[1] - cells;
  LstmInputs in;
  in.output_state = kState;
  in.cell_state = kCells;
  in.projection = -1;
  OPTFARM_ASSIGN_OR_RETURN(const StateScales scales, ReadScales(c, in));
  OPTFARM_ASSIGN_OR_RETURN(const Value bias, RealBias(c, kBias, kWeights));
  const Value weights = RealFloats(c, kWeights);
  const Value layer = c.Add(
      "LiteLstmSequence", "lstm",
      {OneStep(c, RealFloats(c, 0)), RealFloats(c, kState),
       RealFloats(c, kCells),
       BasicWeights(c, weights, 0, inputs, cells, "input_weights"),
       BasicWeights(c, weights, inputs, cells, cells, "recurrent_weights"),
       BasicWeights(c, bias, 0, 0, cells, "bias"), EmptyVector(c, "peephole"),
       EmptyVector(c, "projection"), EmptyVector(c, "projection_bias"),
       EmptyVector(c, "layer_norm")},
      [&](tensorflow::NodeDef* node) {
        graph::SetBool(node, "time_major", true);
        if (scales.cell == 0) return;
        graph::SetFloat(node, "cell_scale", scales.cell);
        graph::SetFloat(node, "output_scale", scales.output);
        // The kernel counts signed values.
        graph::SetInt(node, "output_zero_point",
                      c.in(kState).type() == TensorType::UINT8
                          ? scales.output_zero - 128
                          : scales.output_zero);
      });
  c.Pin(layer);
  c.SetReal(0, c.Add("Identity", "activation", {c.Port(layer, 1)}));
  c.SetReal(1, c.Add("Identity", "cells", {c.Port(layer, 2)}));
  OPTFARM_RETURN_IF_ERROR(KeepState(c, kState, c.Port(layer, 1)));
  return KeepState(c, kCells, c.Port(layer, 2));
}

}  // namespace

absl::Status LowerSequenceLstm(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_UnidirectionalSequenceLSTMOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->diagonal_recurrent_tensors()) {
    return Unsupported("diagonal recurrent weights");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Value y,
      RunDirection(c, kOneDirection,
                   {options->fused_activation_function(), options->cell_clip(),
                    options->proj_clip(), options->time_major()},
                   RealFloats(c, 0)));
  c.SetReal(0, y);
  return absl::OkStatus();
}

absl::Status LowerLstmCell(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_LSTMOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (options->kernel_type() == LSTMKernelType::BASIC) {
    if (options->fused_activation_function() != ActivationFunctionType::TANH ||
        options->cell_clip() != 0 || options->proj_clip() != 0) {
      return Unsupported(
          "a basic cell with another activation than tanh, or "
          "with clipping");
    }
    return LowerBasicCell(c);
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const Value y,
      RunDirection(c, kOneDirection,
                   {options->fused_activation_function(), options->cell_clip(),
                    options->proj_clip(), /*is_time_major=*/true},
                   OneStep(c, RealFloats(c, 0))));
  c.SetReal(0, OfOneStep(c, y));
  return absl::OkStatus();
}

absl::Status LowerBidirectionalLstm(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_BidirectionalSequenceLSTMOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const LstmOptions common = {options->fused_activation_function(),
                              options->cell_clip(), options->proj_clip(),
                              options->time_major()};
  const bool is_linked = c.Has(kForward.auxiliary_weights + 1);
  OPTFARM_ASSIGN_OR_RETURN(const DirectionInputs x,
                           InputsOfDirections(c, kAuxiliaryInput, is_linked));
  OPTFARM_ASSIGN_OR_RETURN(const Value forward,
                           RunDirection(c, kForward, common, x.forward));
  const int64_t time = common.is_time_major ? 0 : 1;
  OPTFARM_ASSIGN_OR_RETURN(
      const Value backward,
      RunDirection(c, kBackward, common,
                   Reversed(c, x.backward, time, "reversed_input")));
  return SetDirections(c, forward,
                       Reversed(c, backward, time, "reversed_output"),
                       options->merge_outputs());
}

}  // namespace optfarm::tflite
