// InlineSubgraph and FunctionOf (lowering.h): a subgraph within another, as
// nodes or as a function of the library.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/tflite/lowering.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/tensor_name.h"
#include "tflite/schema_generated.h"

namespace optfarm::tflite {
namespace {

using tensorflow::NodeDef;
using tensorflow::OpDef;

constexpr size_t kMaxNesting = 32;

// Marks a subgraph as being lowered as long as it lives.
class OpenSubgraph {
 public:
  OpenSubgraph(ModelLowering* model, int index) : model_(*model) {
    model_.open_subgraphs.push_back(index);
  }
  ~OpenSubgraph() { model_.open_subgraphs.pop_back(); }
  OpenSubgraph(const OpenSubgraph&) = delete;
  OpenSubgraph& operator=(const OpenSubgraph&) = delete;

 private:
  ModelLowering& model_;
};

absl::Status CheckNesting(const ModelLowering& model, int index) {
  const auto& open = model.open_subgraphs;
  if (std::find(open.begin(), open.end(), index) != open.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("subgraph ", index, " calls itself"));
  }
  if (open.size() >= kMaxNesting) {
    return absl::InvalidArgumentError("subgraphs are nested too deep");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Value>> OutputsOf(SubgraphLowering& subgraph) {
  std::vector<Value> outputs;
  if (subgraph.subgraph().outputs() == nullptr) return outputs;
  for (const int tensor : *subgraph.subgraph().outputs()) {
    OPTFARM_ASSIGN_OR_RETURN(const Value value, subgraph.Stored(tensor));
    outputs.push_back(value);
  }
  return outputs;
}

// "node:1" as a function spells it: "node:output:0".
absl::StatusOr<std::string> NameInFunction(
    absl::string_view input,
    const absl::flat_hash_map<std::string, const NodeDef*>& nodes,
    const absl::flat_hash_map<std::string, std::string>& arguments) {
  if (absl::StartsWith(input, "^")) return std::string(input);
  OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName name,
                           graph::ParseTensorName(input));
  const auto argument = arguments.find(name.node);
  if (argument != arguments.end()) return argument->second;
  const NodeDef& node = *nodes.at(name.node);
  const OpDef& op = *graph::FindOpDef(node.op());
  for (const OpDef::ArgDef& arg : op.output_arg()) {
    OPTFARM_ASSIGN_OR_RETURN(const graph::PortRange ports,
                             graph::OutputPorts(op, node, arg.name()));
    if (name.port >= ports.begin && name.port < ports.end) {
      return absl::StrCat(name.node, ":", arg.name(), ":",
                          name.port - ports.begin);
    }
  }
  return absl::InternalError(absl::StrCat("no output is '", input, "'"));
}

// Nodes and results under the names of a function.
absl::Status FillFunction(std::vector<NodeDef> nodes,
                          absl::Span<const Value> arguments,
                          absl::Span<const Value> results,
                          tensorflow::FunctionDef* function) {
  absl::flat_hash_map<std::string, std::string> argument_of;
  OpDef* signature = function->mutable_signature();
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto* arg = signature->add_input_arg();
    arg->set_name(absl::StrCat("input_", i));
    arg->set_type(arguments[i].type);
    argument_of[arguments[i].node] = arg->name();
  }
  absl::flat_hash_map<std::string, const NodeDef*> by_name;
  for (const NodeDef& node : nodes) by_name[node.name()] = &node;
  for (const NodeDef& node : nodes) {
    if (argument_of.contains(node.name())) continue;
    NodeDef* copy = function->add_node_def();
    *copy = node;
    for (std::string& input : *copy->mutable_input()) {
      OPTFARM_ASSIGN_OR_RETURN(input,
                               NameInFunction(input, by_name, argument_of));
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    auto* arg = signature->add_output_arg();
    arg->set_name(absl::StrCat("output_", i));
    arg->set_type(results[i].type);
    OPTFARM_ASSIGN_OR_RETURN(
        (*function->mutable_ret())[arg->name()],
        NameInFunction(results[i].Name(), by_name, argument_of));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Value>> InlineSubgraph(
    ModelLowering* model, int index, NodeMaker* maker,
    std::map<std::string, Variable>* variables,
    absl::Span<const Value> inputs) {
  OPTFARM_RETURN_IF_ERROR(CheckNesting(*model, index));
  const OpenSubgraph open(model, index);
  SubgraphLowering inner(model, index, maker, variables);
  const auto* tensors = inner.subgraph().inputs();
  const size_t count = tensors == nullptr ? 0 : tensors->size();
  if (count != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "subgraph ", index, " has ", count, " inputs, not ", inputs.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    inner.Bind(tensors->Get(static_cast<uint32_t>(i)), inputs[i]);
  }
  OPTFARM_RETURN_IF_ERROR(inner.LowerOperators());
  return OutputsOf(inner);
}

absl::StatusOr<std::string> FunctionOf(ModelLowering* model, int index) {
  const auto made = model->function_of.find(index);
  if (made != model->function_of.end()) return made->second;
  OPTFARM_RETURN_IF_ERROR(CheckNesting(*model, index));
  const OpenSubgraph open(model, index);
  NodeMaker maker(&model->budget);
  SubgraphLowering inner(model, index, &maker, /*variables=*/nullptr);
  std::vector<Value> arguments;
  if (inner.subgraph().inputs() != nullptr) {
    for (const int tensor : *inner.subgraph().inputs()) {
      const tensorflow::DataType type = TypeOf(inner.tensor(tensor));
      arguments.push_back(maker.Add(
          "Placeholder", inner.NameOf(tensor), {}, [&](NodeDef* node) {
            (*node->mutable_attr())["dtype"].set_type(type);
          }));
      inner.Bind(tensor, arguments.back());
    }
  }
  OPTFARM_RETURN_IF_ERROR(inner.LowerOperators());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Value> results, OutputsOf(inner));
  OPTFARM_RETURN_IF_ERROR(maker.status());
  std::vector<std::string> roots;
  for (const Value& value : arguments) roots.push_back(value.node);
  for (const Value& value : results) roots.push_back(value.node);
  tensorflow::FunctionDef function;
  function.mutable_signature()->set_name(absl::StrCat("subgraph_", index));
  OPTFARM_RETURN_IF_ERROR(
      FillFunction(maker.Take(roots), arguments, results, &function));
  const std::string name = function.signature().name();
  *model->library.add_function() = std::move(function);
  model->function_of[index] = name;
  return name;
}

}  // namespace optfarm::tflite
