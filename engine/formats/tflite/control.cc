// Control flow and variables: IF and WHILE become TensorFlow's with functions,
// CALL is inlined, CALL_ONCE gives variables their first values.

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/formats/tflite/operator_table.h"
#include "engine/formats/tflite/variables.h"
#include "engine/graph/attr.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

constexpr absl::string_view kHandlePrefix = "variable handle ";

absl::StatusOr<int> SubgraphIndex(OpLowering& c, int64_t index) {
  if (index < 0 || index >= c.subgraph().model().file.subgraph_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no subgraph ", index));
  }
  return static_cast<int>(index);
}

std::vector<Value> StoredInputs(OpLowering& c, int first) {
  std::vector<Value> inputs;
  for (int i = first; i < c.input_count(); ++i) inputs.push_back(c.Stored(i));
  return inputs;
}

// The subgraph's outputs as the operator's.
absl::Status SetOutputs(OpLowering& c, absl::Span<const Value> outputs) {
  if (static_cast<int>(outputs.size()) != c.output_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its subgraph has ", outputs.size(),
                     " outputs, the operator has ", c.output_count()));
  }
  for (int i = 0; i < c.output_count(); ++i) c.SetStored(i, outputs[i]);
  return absl::OkStatus();
}

std::vector<tensorflow::DataType> OutputTypes(OpLowering& c) {
  std::vector<tensorflow::DataType> types;
  for (int i = 0; i < c.output_count(); ++i) types.push_back(TypeOf(c.out(i)));
  return types;
}

absl::Status SetFunction(OpLowering& c, int64_t subgraph,
                         absl::string_view attribute,
                         tensorflow::NodeDef* node) {
  OPTFARM_ASSIGN_OR_RETURN(const int index, SubgraphIndex(c, subgraph));
  OPTFARM_ASSIGN_OR_RETURN(const std::string function,
                           FunctionOf(&c.subgraph().model(), index));
  (*node->mutable_attr())[std::string(attribute)].mutable_func()->set_name(
      function);
  return absl::OkStatus();
}

absl::Status LowerIf(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_IfOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  std::vector<Value> inputs = {c.Scalar(0, "condition")};
  for (const Value& input : StoredInputs(c, 1)) inputs.push_back(input);
  absl::Status status;
  const Value node = c.Add("StatelessIf", "if", inputs, [&](auto* def) {
    graph::SetTypes(def, "Tout", OutputTypes(c));
    status = SetFunction(c, options->then_subgraph_index(), "then_branch", def);
    if (!status.ok()) return;
    status = SetFunction(c, options->else_subgraph_index(), "else_branch", def);
  });
  OPTFARM_RETURN_IF_ERROR(status);
  for (int i = 0; i < c.output_count(); ++i) c.SetStored(i, c.Port(node, i));
  return absl::OkStatus();
}

absl::Status LowerWhile(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_WhileOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  const std::vector<Value> inputs = StoredInputs(c, 0);
  if (c.output_count() != c.input_count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", c.input_count(), " inputs, but ", c.output_count(),
                     " outputs"));
  }
  absl::Status status;
  const Value node = c.Add("StatelessWhile", "while", inputs, [&](auto* def) {
    status = SetFunction(c, options->cond_subgraph_index(), "cond", def);
    if (!status.ok()) return;
    status = SetFunction(c, options->body_subgraph_index(), "body", def);
  });
  OPTFARM_RETURN_IF_ERROR(status);
  for (int i = 0; i < c.output_count(); ++i) c.SetStored(i, c.Port(node, i));
  return absl::OkStatus();
}

absl::Status Inline(OpLowering& c, int64_t subgraph) {
  OPTFARM_ASSIGN_OR_RETURN(const int index, SubgraphIndex(c, subgraph));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Value> outputs,
      InlineSubgraph(&c.subgraph().model(), index, &c.subgraph().maker(),
                     c.subgraph().variables(), StoredInputs(c, 0)));
  return SetOutputs(c, outputs);
}

absl::Status LowerCall(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_CallOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  return Inline(c, options->subgraph());
}

// What an operator of StableHLO is made of.
absl::Status LowerComposite(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_2_as_StableHLOCompositeOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  return Inline(c, options->decomposition_subgraph_index());
}

// The subgraph runs before the first run; what it assigns are first values.
absl::Status LowerCallOnce(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_CallOnceOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (c.subgraph().variables() == nullptr) {
    return Unsupported("CALL_ONCE in the body of IF or WHILE");
  }
  OPTFARM_ASSIGN_OR_RETURN(const int index,
                           SubgraphIndex(c, options->init_subgraph_index()));
  std::map<std::string, Variable> first;
  OPTFARM_RETURN_IF_ERROR(InlineSubgraph(&c.subgraph().model(), index,
                                         &c.subgraph().maker(), &first, {})
                              .status());
  for (const auto& [key, variable] : first) {
    (*c.subgraph().variables())[key].initial = variable.current;
  }
  return absl::OkStatus();
}

absl::string_view TextOf(const flatbuffers::String* text) {
  return text == nullptr ? absl::string_view()
                         : absl::string_view(text->c_str(), text->size());
}

// No node yet: its type shows when it is read or assigned.
absl::Status LowerVarHandle(const OperatorRow&, OpLowering& c) {
  const auto* options = c.op().builtin_options_as_VarHandleOptions();
  if (options == nullptr) return absl::InvalidArgumentError("has no options");
  if (c.subgraph().variables() == nullptr) {
    return Unsupported("a variable in the body of IF or WHILE");
  }
  Value handle;
  handle.node = absl::StrCat(kHandlePrefix, TextOf(options->container()),
                             TextOf(options->container()).empty() ? "" : "/",
                             TextOf(options->shared_name()));
  handle.type = tensorflow::DT_RESOURCE;
  if (c.output_count() != 1) {
    return absl::InvalidArgumentError("must have one output");
  }
  c.SetStored(0, handle);
  return absl::OkStatus();
}

absl::StatusOr<std::string> KeyOfInput(OpLowering& c) {
  const Value handle = c.Stored(0);
  if (!c.status().ok()) return c.status();
  if (!absl::StartsWith(handle.node, kHandlePrefix)) {
    return absl::InvalidArgumentError("input 0 is no handle of a variable");
  }
  return handle.node.substr(kHandlePrefix.size());
}

absl::Status LowerReadVariable(const OperatorRow&, OpLowering& c) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string key, KeyOfInput(c));
  OPTFARM_ASSIGN_OR_RETURN(
      const Value value,
      ReadVariable(key, &c.subgraph().maker(), c.subgraph().variables()));
  c.SetStored(0, value);
  return absl::OkStatus();
}

absl::Status LowerAssignVariable(const OperatorRow&, OpLowering& c) {
  OPTFARM_ASSIGN_OR_RETURN(const std::string key, KeyOfInput(c));
  const Value value = c.Stored(1);
  Variable& variable = (*c.subgraph().variables())[key];
  variable.current = value;
  variable.is_assigned = true;
  return absl::OkStatus();
}

constexpr OperatorRow kRows[] = {
    {BuiltinOperator::IF, 2, LowerIf},
    {BuiltinOperator::WHILE, 2, LowerWhile},
    {BuiltinOperator::CALL, 2, LowerCall},
    {BuiltinOperator::CALL_ONCE, 2, LowerCallOnce},
    {BuiltinOperator::STABLEHLO_COMPOSITE, 2, LowerComposite},
    {BuiltinOperator::VAR_HANDLE, 2, LowerVarHandle},
    {BuiltinOperator::READ_VARIABLE, 2, LowerReadVariable},
    {BuiltinOperator::ASSIGN_VARIABLE, 2, LowerAssignVariable},
};

}  // namespace

absl::Span<const OperatorRow> ControlRows() { return kRows; }

}  // namespace optfarm::tflite
