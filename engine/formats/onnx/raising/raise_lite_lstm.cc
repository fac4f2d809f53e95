// TensorFlow Lite's LSTM over a sequence: ONNX's LSTM with the gates in another
// order. Exporters write one that ONNX's cannot express step by step; one that
// comes here in that form could not be.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/raising/raising_table.h"

namespace optfarm::formats {
namespace {

// Inputs.
constexpr int kX = 0, kHidden = 1, kCell = 2, kInputWeights = 3,
              kRecurrentWeights = 4, kBias = 5, kPeephole = 6,
              kFirstForeign = 7, kLastForeign = 9;

absl::Status CheckHasForm(const NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(n.RequireInputs(kLastForeign + 1));
  OPTFARM_ASSIGN_OR_RETURN(const bool couples,
                           graph::GetBoolOr(n.def(), "couples_gates", false));
  OPTFARM_ASSIGN_OR_RETURN(const float clip,
                           graph::GetFloatOr(n.def(), "cell_clip", 0));
  OPTFARM_ASSIGN_OR_RETURN(const float cell_scale,
                           graph::GetFloatOr(n.def(), "cell_scale", 0));
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           graph::GetStringOr(n.def(), "activation", "tanh"));
  bool has_form = !couples && clip == 0 && cell_scale == 0 &&
                  function != "relu6" && function != "relu_n1_to_1";
  for (int i = kFirstForeign; i <= kLastForeign; ++i) {
    has_form = has_form && n.InShape(i).elements() == 0;
  }
  if (has_form) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "an LSTM that is rounded, clipped, projected or normalized, or whose "
      "gates are coupled, is written for 1 to 512 steps that are known before "
      "the graph runs");
}

std::vector<ValueId> SplitEqually(NodeRaiser& n, ValueId x, int count,
                                  int64_t axis) {
  std::vector<OnnxAttribute> attributes = {{"axis", axis}};
  if (n.opset() >= 18) attributes.push_back({"num_outputs", int64_t{count}});
  return n.EmitMany("Split", {x}, count, std::move(attributes));
}

// Parts of `rows` in another order, as one direction.
ValueId Reordered(NodeRaiser& n, ValueId rows,
                  const std::vector<size_t>& order) {
  const std::vector<ValueId> parts =
      SplitEqually(n, rows, static_cast<int>(order.size()), 0);
  std::vector<ValueId> ordered;
  for (const size_t part : order) ordered.push_back(parts[part]);
  return n.Unsqueeze(
      n.Emit("Concat", std::move(ordered), {{"axis", int64_t{0}}}), {0});
}

// Rows of input, forget, cell and output gate in ONNX's order.
ValueId Gates(NodeRaiser& n, int input) {
  return Reordered(n, n.In(input), {0, 3, 1, 2});
}

absl::StatusOr<std::vector<OnnxAttribute>> Attributes(const NodeRaiser& n) {
  const int64_t cells = n.InShape(kCell).has_rank() ? n.InShape(kCell).dim(1)
                                                    : graph::kUnknownDim;
  if (cells < 1) {
    return absl::FailedPreconditionError("its number of cells is not known");
  }
  std::vector<OnnxAttribute> attributes = {{"hidden_size", cells}};
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           graph::GetStringOr(n.def(), "activation", "tanh"));
  if (function == "tanh") return attributes;
  const std::string name = function == "relu"      ? "Relu"
                           : function == "sigmoid" ? "Sigmoid"
                                                   : "Affine";
  attributes.push_back(
      {"activations", std::vector<std::string>{"Sigmoid", name, name}});
  if (name == "Affine") {
    attributes.push_back({"activation_alpha", std::vector<float>{1, 1}});
    attributes.push_back({"activation_beta", std::vector<float>{0, 0}});
  }
  return attributes;
}

absl::Status LiteLstmSequence(NodeRaiser& n) {
  OPTFARM_RETURN_IF_ERROR(CheckHasForm(n));
  OPTFARM_ASSIGN_OR_RETURN(const bool is_time_major,
                           graph::GetBoolOr(n.def(), "time_major", false));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<OnnxAttribute> attributes,
                           Attributes(n));
  const ValueId x = is_time_major ? n.In(kX) : n.Transpose(n.In(kX), {1, 0, 2});
  const ValueId bias = Gates(n, kBias);
  const ValueId biases =
      n.Emit("Concat",
             {bias, n.Emit("Mul", {bias, n.Number(tensorflow::DT_FLOAT, 0)})},
             {{"axis", int64_t{1}}});
  std::vector<ValueId> inputs = {x,
                                 Gates(n, kInputWeights),
                                 Gates(n, kRecurrentWeights),
                                 biases,
                                 kNoValue,
                                 n.Unsqueeze(n.In(kHidden), {0}),
                                 n.Unsqueeze(n.In(kCell), {0})};
  if (n.InShape(kPeephole).elements() != 0) {
    inputs.push_back(Reordered(n, n.In(kPeephole), {0, 2, 1}));
  }
  const std::vector<ValueId> outputs =
      n.EmitMany("LSTM", std::move(inputs), 3, std::move(attributes));
  const ValueId y = n.Squeeze(outputs[0], {1});
  n.SetPort(0, is_time_major ? y : n.Transpose(y, {1, 0, 2}));
  n.SetPort(1, n.Squeeze(outputs[1], {0}));
  n.SetPort(2, n.Squeeze(outputs[2], {0}));
  return absl::OkStatus();
}

constexpr RaisingRow kRows[] = {
    {"LiteLstmSequence", LiteLstmSequence},
};

}  // namespace

absl::Span<const RaisingRow> LiteLstmRaisings() { return kRows; }

}  // namespace optfarm::formats
