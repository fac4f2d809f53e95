// TensorFlow Lite's LSTM over a sequence. In float it is ONNX's LSTM, with the
// gates in another order. One whose gates and state are rounded or clipped in
// each step is written step by step, because ONNX's LSTM does neither.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// Inputs.
constexpr int kX = 0, kHidden = 1, kCell = 2, kInputWeights = 3,
              kRecurrentWeights = 4, kBias = 5, kFirstOption = 6,
              kLastOption = 9;
// UNITS: steps. A longer sequence would be too many nodes.
constexpr int64_t kMostSteps = 512;
// Of the integer kernel: gates before and after their functions.
constexpr float kGateStep = 1.0f / 4096, kFunctionStep = 1.0f / 32768;

struct LiteLstm {
  bool is_time_major = false;
  float cell_clip = 0;
  // 0: not rounded.
  float cell_scale = 0, hidden_scale = 0, output_scale = 0;
  int64_t hidden_zero = 0, output_zero = 0;
  int64_t time = 0;
};

absl::StatusOr<LiteLstm> Read(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(kLastOption + 1));
  const tensorflow::NodeDef& def = n.def();
  LiteLstm lstm;
  OPTFARM_ASSIGN_OR_RETURN(lstm.is_time_major,
                           graph::GetBoolOr(def, "time_major", false));
  OPTFARM_ASSIGN_OR_RETURN(const bool couples,
                           graph::GetBoolOr(def, "couples_gates", false));
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           graph::GetStringOr(def, "activation", "tanh"));
  OPTFARM_ASSIGN_OR_RETURN(lstm.cell_clip,
                           graph::GetFloatOr(def, "cell_clip", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm.cell_scale,
                           graph::GetFloatOr(def, "cell_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm.hidden_scale,
                           graph::GetFloatOr(def, "hidden_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm.output_scale,
                           graph::GetFloatOr(def, "output_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm.hidden_zero,
                           graph::GetIntOr(def, "hidden_zero_point", 0));
  OPTFARM_ASSIGN_OR_RETURN(lstm.output_zero,
                           graph::GetIntOr(def, "output_zero_point", 0));
  for (int i = kFirstOption; i <= kLastOption; ++i) {
    if (couples || function != "tanh" || n.InShape(i).elements() != 0) {
      return absl::UnimplementedError(
          "coupled gates, peepholes, projections, layer norms and functions "
          "other than tanh are not written");
    }
  }
  const graph::PartialShape& x = n.InShape(kX);
  if (!x.has_rank() || x.rank() != 3) {
    return absl::InvalidArgumentError("its input is not a sequence");
  }
  lstm.time = x.dim(lstm.is_time_major ? 0 : 1);
  return lstm;
}

std::vector<ValueId> SplitEqually(NodeRaiser& n, ValueId x, int count,
                                  int64_t axis) {
  std::vector<OnnxAttribute> attributes = {{"axis", axis}};
  if (n.opset() >= 18) attributes.push_back({"num_outputs", int64_t{count}});
  return n.EmitMany("Split", {x}, count, std::move(attributes));
}

// --- In float ----------------------------------------------------------------

// Rows of input, forget, cell and output gate in ONNX's order, as one
// direction.
ValueId Reordered(NodeRaiser& n, ValueId rows) {
  const std::vector<ValueId> gates = SplitEqually(n, rows, 4, 0);
  return n.Unsqueeze(n.Emit("Concat", {gates[0], gates[3], gates[1], gates[2]},
                            {{"axis", int64_t{0}}}),
                     {0});
}

absl::Status InFloat(NodeRaiser& n, const LiteLstm& lstm) {
  const int64_t cells = n.InShape(kCell).has_rank() ? n.InShape(kCell).dim(1)
                                                    : graph::kUnknownDim;
  if (cells < 1) {
    return absl::FailedPreconditionError("its number of cells is not known");
  }
  const ValueId x =
      lstm.is_time_major ? n.In(kX) : n.Transpose(n.In(kX), {1, 0, 2});
  const ValueId bias = Reordered(n, n.In(kBias));
  const ValueId biases =
      n.Emit("Concat",
             {bias, n.Emit("Mul", {bias, n.Number(tensorflow::DT_FLOAT, 0)})},
             {{"axis", int64_t{1}}});
  std::vector<OnnxAttribute> attributes = {{"hidden_size", cells}};
  const std::vector<ValueId> outputs = n.EmitMany(
      "LSTM",
      {x, Reordered(n, n.In(kInputWeights)),
       Reordered(n, n.In(kRecurrentWeights)), biases, kNoValue,
       n.Unsqueeze(n.In(kHidden), {0}), n.Unsqueeze(n.In(kCell), {0})},
      3, std::move(attributes));
  const ValueId y = n.Squeeze(outputs[0], {1});
  n.SetPort(0, lstm.is_time_major ? y : n.Transpose(y, {1, 0, 2}));
  n.SetPort(1, n.Squeeze(outputs[1], {0}));
  n.SetPort(2, n.Squeeze(outputs[2], {0}));
  return absl::OkStatus();
}

// --- Rounded in each step ----------------------------------------------------

// To the nearest of `values` steps around a zero point; as it is for step 0.
ValueId Rounded(NodeRaiser& n, ValueId x, float step, float values,
                int64_t zero = 0) {
  if (!(step > 0)) return x;
  const auto number = [&](float value) {
    return n.Number(tensorflow::DT_FLOAT, value);
  };
  const float least = -values / 2 - static_cast<float>(zero);
  const ValueId steps = n.Emit("Round", {n.Emit("Div", {x, number(step)})});
  const ValueId held =
      n.Emit("Clip", {steps, number(least), number(least + values - 1)});
  return n.Emit("Mul", {held, number(step)});
}

struct State {
  ValueId h, c;
};

// `sums`: what the step's input and the bias give to the gates.
State Step(NodeRaiser& n, const LiteLstm& lstm, ValueId sums, ValueId recurrent,
           const State& before) {
  constexpr float kWide = 65536, kNarrow = 256;
  const bool is_rounded = lstm.cell_scale > 0;
  const float gate_step = is_rounded ? kGateStep : 0;
  const float function_step = is_rounded ? kFunctionStep : 0;
  const ValueId all =
      n.Emit("Add", {sums, n.Emit("MatMul", {before.h, recurrent})});
  const std::vector<ValueId> gates =
      SplitEqually(n, Rounded(n, all, gate_step, kWide), 4, 1);
  const auto value = [&](int gate, const char* function) {
    return Rounded(n, n.Emit(function, {gates[static_cast<size_t>(gate)]}),
                   function_step, kWide);
  };
  const ValueId kept = n.Emit("Mul", {value(1, "Sigmoid"), before.c});
  const ValueId taken = n.Emit("Mul", {value(0, "Sigmoid"), value(2, "Tanh")});
  ValueId cell = n.Emit("Add", {Rounded(n, kept, lstm.cell_scale, kWide),
                                Rounded(n, taken, lstm.cell_scale, kWide)});
  if (lstm.cell_clip > 0) {
    cell =
        n.Emit("Clip", {cell, n.Number(tensorflow::DT_FLOAT, -lstm.cell_clip),
                        n.Number(tensorflow::DT_FLOAT, lstm.cell_clip)});
  }
  cell = Rounded(n, cell, lstm.cell_scale, kWide);
  const ValueId bent = Rounded(n, n.Emit("Tanh", {cell}), function_step, kWide);
  ValueId hidden = n.Emit("Mul", {value(3, "Sigmoid"), bent});
  hidden = Rounded(n, hidden, lstm.hidden_scale, kNarrow, lstm.hidden_zero);
  return {Rounded(n, hidden, lstm.output_scale, kNarrow, lstm.output_zero),
          cell};
}

absl::Status InSteps(NodeRaiser& n, const LiteLstm& lstm) {
  if (lstm.time < 1 || lstm.time > kMostSteps) {
    return absl::UnimplementedError(absl::StrCat(
        "a rounded or clipped LSTM is written for 1 to ", kMostSteps,
        " steps that are known before the graph runs"));
  }
  const int64_t axis = lstm.is_time_major ? 0 : 1;
  const ValueId weights = n.Transpose(n.In(kInputWeights), {1, 0});
  const ValueId recurrent = n.Transpose(n.In(kRecurrentWeights), {1, 0});
  const ValueId sums =
      n.Emit("Add", {n.Emit("MatMul", {n.In(kX), weights}), n.In(kBias)});
  const std::vector<ValueId> parts =
      lstm.time == 1 ? std::vector<ValueId>{sums}
                     : SplitEqually(n, sums, static_cast<int>(lstm.time), axis);
  State state = {n.In(kHidden), n.In(kCell)};
  std::vector<ValueId> outputs;
  for (const ValueId part : parts) {
    state = Step(n, lstm, n.Squeeze(part, {axis}), recurrent, state);
    outputs.push_back(n.Unsqueeze(state.h, {axis}));
  }
  n.SetPort(0, n.Emit("Concat", std::move(outputs), {{"axis", axis}}));
  n.SetPort(1, state.h);
  n.SetPort(2, state.c);
  return absl::OkStatus();
}

absl::Status LiteLstmSequence(NodeRaiser& n) {
  OPTFARM_ASSIGN_OR_RETURN(const LiteLstm lstm, Read(n));
  // ONNX's own clip is one of the gates.
  return lstm.cell_scale > 0 || lstm.cell_clip > 0 ? InSteps(n, lstm)
                                                   : InFloat(n, lstm);
}

constexpr RaisingRow kRows[] = {
    {"LiteLstmSequence", LiteLstmSequence},
};

}  // namespace

absl::Span<const RaisingRow> LiteLstmRaisings() { return kRows; }

}  // namespace optfarm::formats
