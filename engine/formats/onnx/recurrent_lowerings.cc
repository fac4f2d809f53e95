// LSTM, GRU and RNN over sequences.

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/onnx/lowering_table.h"

namespace optfarm::formats {
namespace {

// The input, or a tensor without elements where it is left out.
Endpoint InputOrNone(NodeLowering& n, int i, DataType type) {
  if (n.has_input(i)) return n.input(i);
  tensorflow::TensorProto none;
  none.set_dtype(type);
  none.mutable_tensor_shape()->add_dim()->set_size(0);
  return n.builder().Constant(std::move(none));
}

OpAttr FloatList(absl::string_view name, const std::vector<float>& values) {
  tensorflow::AttrValue value;
  value.mutable_list()->mutable_f()->Add(values.begin(), values.end());
  return {name, std::move(value)};
}

// Size of the state, from the attribute or from R's shape.
absl::StatusOr<int64_t> HiddenSize(NodeLowering& n) {
  if (n.has_attr("hidden_size")) return n.Int("hidden_size", 0);
  const PartialShape& r = n.shape(n.input(2));
  if (r.has_rank() && r.rank() == 3 && r.dim(2) > 0) return r.dim(2);
  return absl::InvalidArgumentError("hidden_size is missing");
}

// State tensors are [directions, batch, hidden], or batch first by layout 1.
Endpoint TurnState(NodeLowering& n, Endpoint state, bool batch_first) {
  const PartialShape& shape = n.shape(state);
  const bool is_none = shape.has_rank() && shape.rank() == 1;
  return batch_first && !is_none ? n.Transpose(state, {1, 0, 2}) : state;
}

absl::Status LowerSequence(NodeLowering& n, const char* op, bool is_lstm,
                           std::vector<OpAttr> attrs) {
  const Endpoint x = n.input(0);
  const DataType type = n.dtype(x);
  const bool batch_first = n.Int("layout", 0) != 0;
  OPTFARM_ASSIGN_OR_RETURN(const int64_t hidden, HiddenSize(n));
  attrs.emplace_back("hidden_size", hidden);
  attrs.emplace_back("direction", n.String("direction", "forward"));
  attrs.emplace_back("activations", n.Strings("activations"));
  attrs.push_back(FloatList("activation_alpha", n.Floats("activation_alpha")));
  attrs.push_back(FloatList("activation_beta", n.Floats("activation_beta")));
  attrs.emplace_back("clip", n.Float("clip", 0));
  std::vector<Endpoint> inputs = {
      batch_first ? n.Transpose(x, {1, 0, 2}) : x,
      n.input(1),
      n.input(2),
      InputOrNone(n, 3, type),
      InputOrNone(n, 4, tensorflow::DT_INT32),
      TurnState(n, InputOrNone(n, 5, type), batch_first)};
  if (is_lstm) {
    inputs.push_back(TurnState(n, InputOrNone(n, 6, type), batch_first));
    inputs.push_back(InputOrNone(n, 7, type));
  }
  std::vector<Endpoint> results = n.AddAll(op, inputs, std::move(attrs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!batch_first) {
      n.SetOutput(static_cast<int>(i), results[i]);
    } else if (n.wants_output(static_cast<int>(i))) {
      // y is [steps, directions, batch, hidden].
      n.SetOutput(static_cast<int>(i),
                  i == 0 ? n.Transpose(results[i], {2, 0, 1, 3})
                         : n.Transpose(results[i], {1, 0, 2}));
    }
  }
  return absl::OkStatus();
}

absl::Status LowerLstm(NodeLowering& n) {
  return LowerSequence(n, "LstmSequence", true,
                       {{"input_forget", n.Int("input_forget", 0) != 0}});
}

absl::Status LowerGru(NodeLowering& n) {
  return LowerSequence(
      n, "GruSequence", false,
      {{"linear_before_reset", n.Int("linear_before_reset", 0) != 0}});
}

absl::Status LowerRnn(NodeLowering& n) {
  return LowerSequence(n, "RnnSequence", false, {});
}

constexpr LoweringRow kRows[] = {
    {"GRU", LowerGru},
    {"LSTM", LowerLstm},
    {"RNN", LowerRnn},
};

}  // namespace

absl::Span<const LoweringRow> RecurrentLowerings() { return kRows; }

}  // namespace optfarm::formats
