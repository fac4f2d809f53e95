// Recurrent layers over a sequence of known length, step by step: products with
// the whole sequence at once, then gates and state for each step. The
// operators for whole sequences keep state between runs, which these do not.

#include <tflite/schema_generated.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/raising/raising_table.h"
#include "engine/graph/attr.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::PartialShape;
using tflite::BuiltinOperator;

// Longer sequences would make files of steps.
constexpr int64_t kMostSteps = 512;
// Elements of a state.
constexpr int64_t kLargestState = 1 << 24;

// Inputs and outputs that both layers have.
constexpr int kInput = 0, kWeights = 1, kRecurrent = 2, kBias = 3, kLengths = 4,
              kInitialHidden = 5, kInitialCell = 6, kPeepholes = 7;

struct Sequence {
  int64_t steps = 0;
  int64_t batch = 0;
  int64_t depth = 0;
  int64_t hidden = 0;
  int gates = 0;
  int directions = 1;
  bool is_reverse = false;
};

bool IsGiven(const NodeRaiser& node, int i) {
  return i < node.input_count() && node.ShapeOfInput(i).elements() != 0;
}

absl::Status CheckPlain(const NodeRaiser& node,
                        const std::vector<std::string>& usual) {
  OPTFARM_ASSIGN_OR_RETURN(const float clip,
                           graph::GetFloatOr(node.def(), "clip", 0));
  if (clip != 0) return absl::UnimplementedError("it clips its gates");
  const tensorflow::AttrValue* names = node.node().FindAttr("activations");
  if (names == nullptr) return absl::OkStatus();
  for (int i = 0; i < names->list().s_size(); ++i) {
    const std::string name = absl::AsciiStrToLower(names->list().s(i));
    if (name != usual[static_cast<size_t>(i) % usual.size()]) {
      return absl::UnimplementedError(
          absl::StrCat("its activation ", name, " is not written, only ",
                       usual[static_cast<size_t>(i) % usual.size()]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Sequence> ReadSequence(const NodeRaiser& node, int gates) {
  const PartialShape& x = node.ShapeOfInput(kInput);
  const PartialShape& w = node.ShapeOfInput(kWeights);
  const PartialShape& r = node.ShapeOfInput(kRecurrent);
  if (!x.is_static() || x.rank() != 3 || !w.is_static() || w.rank() != 3 ||
      !r.is_static() || r.rank() != 3) {
    return absl::FailedPreconditionError(
        "the length of its sequence or its sizes are not known");
  }
  Sequence s{x.dim(0), x.dim(1), x.dim(2),
             r.dim(2), gates,    static_cast<int>(w.dim(0)),
             false};
  if (s.steps < 1 || s.steps > kMostSteps) {
    return absl::UnimplementedError(absl::StrCat("its sequence has ", s.steps,
                                                 " steps; 1 to ", kMostSteps,
                                                 " are written"));
  }
  if (s.batch < 1 || s.hidden < 1 || s.batch > kLargestState ||
      s.hidden > kLargestState || s.batch * s.hidden > kLargestState) {
    return absl::UnimplementedError("its state is out of range");
  }
  if (w.dim(0) < 1 || w.dim(0) > 2 || r.dim(0) != w.dim(0) ||
      w.dim(1) != gates * s.hidden || r.dim(1) != w.dim(1) ||
      w.dim(2) != s.depth) {
    return absl::InvalidArgumentError("its weights do not fit");
  }
  OPTFARM_ASSIGN_OR_RETURN(
      const std::string direction,
      graph::GetStringOr(node.def(), "direction", "forward"));
  s.is_reverse = direction == "reverse";
  if (IsGiven(node, kLengths)) {
    const auto lengths = node.view().KnownNumbers(node.input(kLengths));
    if (!lengths.has_value() ||
        std::any_of(lengths->begin(), lengths->end(),
                    [&](int64_t length) { return length != s.steps; })) {
      return absl::UnimplementedError("its sequences differ in length");
    }
  }
  return s;
}

// Steps of one direction.
class Unroller {
 public:
  Unroller(NodeRaiser& node, const Sequence& s) : node_(node), s_(s) {}

  // Part `direction` of a constant, rows first .. first + count of it.
  absl::StatusOr<std::vector<float>> Rows(int input, int direction,
                                          int64_t first, int64_t count,
                                          int64_t columns) const {
    OPTFARM_ASSIGN_OR_RETURN(const Constant constant,
                             node_.view().ConstantAt(node_.input(input)));
    OPTFARM_ASSIGN_OR_RETURN(const std::vector<float> all,
                             RealValues(constant));
    const int64_t whole = static_cast<int64_t>(all.size()) / s_.directions;
    const int64_t begin = direction * whole + first * columns;
    if (begin < 0 || first * columns + count * columns > whole) {
      return absl::InvalidArgumentError("its weights do not fit");
    }
    return std::vector<float>(all.begin() + begin,
                              all.begin() + begin + count * columns);
  }

  TensorId Weights(const std::vector<float>& values, int64_t rows) {
    return node_.tensors().ConstantTensor(
        absl::StrCat(node_.node().name(), "/weights"),
        FloatConstant({rows, static_cast<int64_t>(values.size()) / rows},
                      values));
  }

  // The product of a state with weights of `rows` rows.
  TensorId Product(TensorId state, TensorId weights, TensorId bias,
                   int64_t rows) {
    return node_.EmitBetween(BuiltinOperator::FULLY_CONNECTED,
                             {state, weights, bias}, state,
                             PartialShape({s_.batch, rows}));
  }

  // Products of all steps of the input, one tensor for each.
  std::vector<TensorId> InputProducts(TensorId weights, TensorId bias) {
    const int64_t rows = s_.gates * s_.hidden;
    OperatorOptions keep;
    keep.keep_dims = true;
    const TensorId x = node_.Tensor(kInput);
    const TensorId all =
        node_.EmitBetween(BuiltinOperator::FULLY_CONNECTED, {x, weights, bias},
                          x, PartialShape({s_.steps, s_.batch, rows}), keep);
    return Parts(BuiltinOperator::UNPACK, {all}, static_cast<int>(s_.steps), 0,
                 PartialShape({s_.batch, rows}), all);
  }

  // The gates of a step.
  std::vector<TensorId> Gates(TensorId all, int count) {
    return Parts(BuiltinOperator::SPLIT, {node_.Int32(1), all}, count, 1,
                 PartialShape({s_.batch, s_.hidden}), all);
  }

  TensorId Step(BuiltinOperator op, std::vector<TensorId> inputs) {
    const TensorId like = inputs[0];
    return node_.EmitBetween(op, std::move(inputs), like,
                             PartialShape({s_.batch, s_.hidden}));
  }

  // The state that a direction begins with.
  TensorId InitialState(int input, int direction) {
    if (!IsGiven(node_, input)) {
      return node_.Floats({s_.batch, s_.hidden},
                          std::vector<float>(s_.batch * s_.hidden, 0.0f));
    }
    const TensorId given = node_.Tensor(input);
    const TensorId part =
        node_.EmitBetween(BuiltinOperator::SLICE,
                          {given, node_.Int32s({direction, 0, 0}),
                           node_.Int32s({1, s_.batch, s_.hidden})},
                          given, PartialShape({1, s_.batch, s_.hidden}));
    return node_.EmitBetween(BuiltinOperator::RESHAPE,
                             {part, node_.Int32s({s_.batch, s_.hidden})}, part,
                             PartialShape({s_.batch, s_.hidden}));
  }

  TensorId Packed(const std::vector<TensorId>& parts, int axis,
                  PartialShape shape) {
    OperatorOptions options;
    options.axis = axis;
    options.count = static_cast<int>(parts.size());
    return node_.EmitBetween(BuiltinOperator::PACK, parts, parts[0],
                             std::move(shape), options);
  }

 private:
  std::vector<TensorId> Parts(BuiltinOperator op, std::vector<TensorId> inputs,
                              int count, int axis, const PartialShape& shape,
                              TensorId like) {
    std::vector<TensorId> parts;
    for (int i = 0; i < count; ++i) {
      DraftTensor part;
      part.name = absl::StrCat(node_.node().name(), "/step",
                               node_.draft().tensors.size());
      part.type = node_.draft().tensor(like).type;
      part.shape = shape;
      parts.push_back(node_.draft().AddTensor(std::move(part)));
    }
    OperatorOptions options;
    options.count = count;
    options.axis = axis;
    node_.draft().AddOperator(op, std::move(inputs), parts, options);
    return parts;
  }

  NodeRaiser& node_;
  const Sequence& s_;
};

// What a direction leaves: the hidden state of each step, in the order of the
// sequence, and the states at its end.
struct DirectionResult {
  std::vector<TensorId> hidden;
  TensorId last_hidden = kNoTensor;
  TensorId last_cell = kNoTensor;
};

absl::StatusOr<DirectionResult> UnrollLstm(NodeRaiser& node, const Sequence& s,
                                           int direction) {
  Unroller u(node, s);
  const int64_t rows = 4 * s.hidden;
  OPTFARM_ASSIGN_OR_RETURN(const auto w,
                           u.Rows(kWeights, direction, 0, rows, s.depth));
  OPTFARM_ASSIGN_OR_RETURN(const auto r,
                           u.Rows(kRecurrent, direction, 0, rows, s.hidden));
  std::vector<float> bias(rows, 0.0f);
  if (IsGiven(node, kBias)) {
    OPTFARM_ASSIGN_OR_RETURN(const auto both,
                             u.Rows(kBias, direction, 0, 2 * rows, 1));
    for (int64_t i = 0; i < rows; ++i) bias[i] = both[i] + both[i + rows];
  }
  const std::vector<TensorId> inputs =
      u.InputProducts(u.Weights(w, rows), node.Floats({rows}, bias));
  const TensorId recurrent = u.Weights(r, rows);
  DirectionResult result;
  result.hidden.resize(s.steps);
  TensorId h = u.InitialState(kInitialHidden, direction);
  TensorId c = u.InitialState(kInitialCell, direction);
  const bool backwards = s.is_reverse || direction == 1;
  for (int64_t step = 0; step < s.steps; ++step) {
    const int64_t t = backwards ? s.steps - 1 - step : step;
    const TensorId sum =
        node.EmitBetween(BuiltinOperator::ADD,
                         {inputs[t], u.Product(h, recurrent, kNoTensor, rows)},
                         inputs[t], PartialShape({s.batch, rows}));
    // Input, output, forget, cell.
    const std::vector<TensorId> gates = u.Gates(sum, 4);
    const TensorId kept =
        u.Step(BuiltinOperator::MUL,
               {u.Step(BuiltinOperator::LOGISTIC, {gates[2]}), c});
    const TensorId added = u.Step(
        BuiltinOperator::MUL, {u.Step(BuiltinOperator::LOGISTIC, {gates[0]}),
                               u.Step(BuiltinOperator::TANH, {gates[3]})});
    c = u.Step(BuiltinOperator::ADD, {kept, added});
    h = u.Step(BuiltinOperator::MUL,
               {u.Step(BuiltinOperator::LOGISTIC, {gates[1]}),
                u.Step(BuiltinOperator::TANH, {c})});
    result.hidden[t] = h;
  }
  result.last_hidden = h;
  result.last_cell = c;
  return result;
}

struct GruWeights {
  std::vector<TensorId> inputs;
  TensorId gates = kNoTensor, candidate = kNoTensor;
  // Of the candidate's recurrent product, where it is reset as a whole.
  TensorId candidate_bias = kNoTensor;
};

absl::StatusOr<GruWeights> ReadGru(NodeRaiser& node, const Sequence& s,
                                   int direction, bool resets_product) {
  Unroller u(node, s);
  const int64_t rows = 3 * s.hidden, pair = 2 * s.hidden;
  OPTFARM_ASSIGN_OR_RETURN(const auto w,
                           u.Rows(kWeights, direction, 0, rows, s.depth));
  OPTFARM_ASSIGN_OR_RETURN(const auto gates,
                           u.Rows(kRecurrent, direction, 0, pair, s.hidden));
  OPTFARM_ASSIGN_OR_RETURN(
      const auto candidate,
      u.Rows(kRecurrent, direction, pair, s.hidden, s.hidden));
  std::vector<float> bias(rows, 0.0f), inner(s.hidden, 0.0f);
  if (IsGiven(node, kBias)) {
    OPTFARM_ASSIGN_OR_RETURN(const auto both,
                             u.Rows(kBias, direction, 0, 2 * rows, 1));
    for (int64_t i = 0; i < rows; ++i) {
      const bool is_inner = resets_product && i >= pair;
      bias[i] = both[i] + (is_inner ? 0.0f : both[i + rows]);
      if (is_inner) inner[i - pair] = both[i + rows];
    }
  }
  GruWeights result;
  result.inputs =
      u.InputProducts(u.Weights(w, rows), node.Floats({rows}, bias));
  result.gates = u.Weights(gates, pair);
  result.candidate = u.Weights(candidate, s.hidden);
  if (resets_product) result.candidate_bias = node.Floats({s.hidden}, inner);
  return result;
}

absl::StatusOr<DirectionResult> UnrollGru(NodeRaiser& node, const Sequence& s,
                                          int direction) {
  OPTFARM_ASSIGN_OR_RETURN(
      const bool resets_product,
      graph::GetBoolOr(node.def(), "linear_before_reset", false));
  OPTFARM_ASSIGN_OR_RETURN(const GruWeights weights,
                           ReadGru(node, s, direction, resets_product));
  Unroller u(node, s);
  DirectionResult result;
  result.hidden.resize(s.steps);
  TensorId h = u.InitialState(kInitialHidden, direction);
  const bool backwards = s.is_reverse || direction == 1;
  for (int64_t step = 0; step < s.steps; ++step) {
    const int64_t t = backwards ? s.steps - 1 - step : step;
    // Update, reset, candidate.
    const std::vector<TensorId> x = u.Gates(weights.inputs[t], 3);
    const std::vector<TensorId> gates =
        u.Gates(u.Product(h, weights.gates, kNoTensor, 2 * s.hidden), 2);
    const auto gate = [&](int i) {
      return u.Step(BuiltinOperator::LOGISTIC,
                    {u.Step(BuiltinOperator::ADD, {x[i], gates[i]})});
    };
    const TensorId update = gate(0);
    const TensorId reset = gate(1);
    TensorId inner = kNoTensor;
    if (resets_product) {
      inner = u.Step(BuiltinOperator::MUL,
                     {reset, u.Product(h, weights.candidate,
                                       weights.candidate_bias, s.hidden)});
    } else {
      inner = u.Product(u.Step(BuiltinOperator::MUL, {reset, h}),
                        weights.candidate, kNoTensor, s.hidden);
    }
    const TensorId candidate = u.Step(
        BuiltinOperator::TANH, {u.Step(BuiltinOperator::ADD, {x[2], inner})});
    const TensorId change =
        u.Step(BuiltinOperator::MUL,
               {update, u.Step(BuiltinOperator::SUB, {h, candidate})});
    h = u.Step(BuiltinOperator::ADD, {candidate, change});
    result.hidden[t] = h;
  }
  result.last_hidden = h;
  return result;
}

// Outputs: [steps, directions, batch, hidden], and the last states.
void FinishSequence(NodeRaiser& node, const Sequence& s,
                    const std::vector<DirectionResult>& results) {
  Unroller u(node, s);
  std::vector<TensorId> all, hidden, cell;
  for (const DirectionResult& result : results) {
    all.push_back(
        u.Packed(result.hidden, 0, PartialShape({s.steps, s.batch, s.hidden})));
    hidden.push_back(result.last_hidden);
    if (result.last_cell != kNoTensor) cell.push_back(result.last_cell);
  }
  const int64_t directions = s.directions;
  node.SetOutput(
      u.Packed(all, 1, PartialShape({s.steps, directions, s.batch, s.hidden})));
  const PartialShape state({directions, s.batch, s.hidden});
  node.SetOutput(u.Packed(hidden, 0, state), 1);
  if (!cell.empty()) node.SetOutput(u.Packed(cell, 0, state), 2);
}

absl::Status RaiseLstm(NodeRaiser& node) {
  OPTFARM_RETURN_IF_ERROR(CheckPlain(node, {"sigmoid", "tanh", "tanh"}));
  OPTFARM_ASSIGN_OR_RETURN(const bool couples,
                           graph::GetBoolOr(node.def(), "input_forget", false));
  if (couples || IsGiven(node, kPeepholes)) {
    return absl::UnimplementedError(
        "peepholes and coupled gates are not written");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, 4));
  std::vector<DirectionResult> results;
  for (int direction = 0; direction < s.directions; ++direction) {
    OPTFARM_ASSIGN_OR_RETURN(DirectionResult result,
                             UnrollLstm(node, s, direction));
    results.push_back(std::move(result));
  }
  FinishSequence(node, s, results);
  return absl::OkStatus();
}

absl::Status RaiseGru(NodeRaiser& node) {
  OPTFARM_RETURN_IF_ERROR(CheckPlain(node, {"sigmoid", "tanh"}));
  OPTFARM_ASSIGN_OR_RETURN(const Sequence s, ReadSequence(node, 3));
  std::vector<DirectionResult> results;
  for (int direction = 0; direction < s.directions; ++direction) {
    OPTFARM_ASSIGN_OR_RETURN(DirectionResult result,
                             UnrollGru(node, s, direction));
    results.push_back(std::move(result));
  }
  FinishSequence(node, s, results);
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"LstmSequence", RaiseLstm},
    {"GruSequence", RaiseGru},
};

}  // namespace

absl::Span<const RaisingRow> RecurrentRaisings() { return kRows; }

}  // namespace optfarm::formats::tflite_raising
