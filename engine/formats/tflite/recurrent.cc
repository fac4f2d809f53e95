// Recurrent operators: plain layers over a sequence in one direction or in both
// and a step of one, here; LSTM and SVDF in files of their own. Their state is
// a variable: it starts from what the run before left.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/lstm.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/sequences.h"
#include "engine/formats/tflite/svdf.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

// Where a direction's inputs stand among those of the operator.
struct RnnInputs {
  int weights = 1;
  int recurrent_weights = 2;
  int bias = 3;
  int state = 4;
  // -1: the operator has none.
  int auxiliary_weights = -1;
};

constexpr RnnInputs kOneDirection;
constexpr RnnInputs kForward = {1, 2, 3, 4, 10};
constexpr RnnInputs kBackward = {5, 6, 7, 8, 11};
constexpr int kAuxiliaryInput = 9;

struct RnnOptions {
  ActivationFunctionType function = ActivationFunctionType::TANH;
  bool is_time_major = false;
  bool is_backward = false;
};

// The function that leaves its argument, with these factors.
constexpr absl::string_view kIdentity = "Affine";

// A function of RnnSequence; `clip` bounds what it is applied to.
struct RnnFunction {
  absl::string_view name = "Tanh";
  float clip = 0;
};

absl::StatusOr<RnnFunction> FunctionOf(ActivationFunctionType function) {
  switch (function) {
    case ActivationFunctionType::NONE:
      return RnnFunction{kIdentity, 0};
    case ActivationFunctionType::RELU:
      return RnnFunction{"Relu", 0};
    case ActivationFunctionType::RELU_N1_TO_1:
      return RnnFunction{kIdentity, 1};
    case ActivationFunctionType::RELU6:
      return RnnFunction{"Relu", 6};
    case ActivationFunctionType::TANH:
      return RnnFunction{"Tanh", 0};
    default:
      return Unsupported(absl::StrCat(
          "activation function ", EnumNameActivationFunctionType(function)));
  }
}

Value OfDirection(OpLowering& c, const Value& x, absl::string_view suffix) {
  return c.Add("ExpandDims", suffix,
               {x, c.Int(absl::StrCat(suffix, "/axis"), 0)});
}

Value BatchSwapped(OpLowering& c, const Value& x, absl::string_view suffix) {
  return c.Add("Transpose", suffix,
               {x, c.IntVector(absl::StrCat(suffix, "/perm"), {1, 0, 2})});
}

// The operator has one bias, RnnSequence two.
Value TwoBiases(OpLowering& c, const Value& bias) {
  const Value none = c.Add("ZerosLike", "bias/none", {bias});
  return c.Add("ConcatV2", "bias", {bias, none, c.Int("bias/axis", 0)});
}

Value WeightsOf(OpLowering& c, const RnnInputs& in) {
  const Value weights = RealFloats(c, in.weights);
  if (in.auxiliary_weights < 0 || !c.Has(in.auxiliary_weights)) return weights;
  // Both inputs of a linked layer stand side by side.
  return c.Add("ConcatV2", "linked_weights",
               {weights, RealFloats(c, in.auxiliary_weights),
                c.Int("linked_weights/axis", 1)});
}

// One direction over `x`; the state is kept.
absl::StatusOr<Value> RunDirection(OpLowering& c, const RnnInputs& in,
                                   const RnnOptions& options, const Value& x) {
  for (const int i : {in.weights, in.recurrent_weights, in.bias, in.state}) {
    if (!c.Has(i)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", i, " is missing"));
    }
  }
  const std::vector<int64_t> state = ShapeOf(c.in(in.state));
  if (state.size() != 2 || state[1] <= 0) {
    return absl::InvalidArgumentError("its state has no usable shape");
  }
  OPTFARM_ASSIGN_OR_RETURN(const RnnFunction function,
                           FunctionOf(options.function));
  Constant no_lengths;
  no_lengths.type = tensorflow::DT_INT32;
  no_lengths.shape = {0};
  const Value steps = options.is_time_major ? x : BatchSwapped(c, x, "steps");
  const Value layer = c.Add(
      "RnnSequence", "rnn",
      {steps, OfDirection(c, WeightsOf(c, in), "weights"),
       OfDirection(c, RealFloats(c, in.recurrent_weights), "recurrent_weights"),
       OfDirection(c, TwoBiases(c, RealFloats(c, in.bias)), "biases"),
       c.Const("lengths", no_lengths),
       OfDirection(c, RealFloats(c, in.state), "initial")},
      [&](tensorflow::NodeDef* node) {
        graph::SetInt(node, "hidden_size", state[1]);
        graph::SetString(node, "direction",
                         options.is_backward ? "reverse" : "forward");
        auto& attributes = *node->mutable_attr();
        attributes["activations"].mutable_list()->add_s(
            std::string(function.name));
        if (function.name == kIdentity) {
          attributes["activation_alpha"].mutable_list()->add_f(1);
          attributes["activation_beta"].mutable_list()->add_f(0);
        }
        graph::SetFloat(node, "clip", function.clip);
      });
  c.Pin(layer);
  const auto squeezed = [&](const Value& value, int64_t axis,
                            absl::string_view suffix) {
    return c.Add("Squeeze", suffix, {value}, [&](tensorflow::NodeDef* node) {
      SetInts(node, "squeeze_dims", {axis});
    });
  };
  OPTFARM_RETURN_IF_ERROR(
      KeepState(c, in.state, squeezed(c.Port(layer, 1), 0, "last")));
  const Value y = squeezed(layer, 1, "hidden");
  return options.is_time_major ? y : BatchSwapped(c, y, "batches");
}

absl::Status LowerRnnCell(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_RNNOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  OPTFARM_ASSIGN_OR_RETURN(const Value y,
                           RunDirection(c, kOneDirection,
                                        {options->fused_activation_function(),
                                         /*is_time_major=*/true},
                                        OneStep(c, RealFloats(c, 0))));
  c.SetReal(0, OfOneStep(c, y));
  return absl::OkStatus();
}

absl::Status LowerSequenceRnn(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_SequenceRNNOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  OPTFARM_ASSIGN_OR_RETURN(const Value y,
                           RunDirection(c, kOneDirection,
                                        {options->fused_activation_function(),
                                         options->time_major()},
                                        RealFloats(c, 0)));
  c.SetReal(0, y);
  return absl::OkStatus();
}

absl::Status LowerBidirectionalRnn(const OperatorRow&, OpLowering& c) {
  const auto* options =
      c.op().builtin_options_as_BidirectionalSequenceRNNOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  RnnOptions direction = {options->fused_activation_function(),
                          options->time_major()};
  OPTFARM_ASSIGN_OR_RETURN(
      const DirectionInputs x,
      InputsOfDirections(c, kAuxiliaryInput,
                         c.Has(kForward.auxiliary_weights)));
  OPTFARM_ASSIGN_OR_RETURN(const Value forward,
                           RunDirection(c, kForward, direction, x.forward));
  direction.is_backward = true;
  OPTFARM_ASSIGN_OR_RETURN(const Value backward,
                           RunDirection(c, kBackward, direction, x.backward));
  return SetDirections(c, forward, backward, options->merge_outputs());
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::LSTM, 5, LowerLstmCell},
    {BuiltinOperator::RNN, 4, LowerRnnCell},
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, 5, LowerSequenceLstm},
    {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, 4, LowerSequenceRnn},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, 4, LowerBidirectionalLstm},
    {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN, 4, LowerBidirectionalRnn},
    {BuiltinOperator::SVDF, 5, LowerSvdf},
};

}  // namespace

absl::Span<const OperatorRow> RecurrentRows() { return kRows; }

}  // namespace optfarm::tflite
