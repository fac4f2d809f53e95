#include "engine/transforms/nodes/constant_folding.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::transforms {

using graph::Endpoint;
using graph::NodeId;
using runtime::Tensor;

namespace {

bool IsControlFlow(absl::string_view op) {
  static constexpr absl::string_view kOps[] = {
      "Switch",        "RefSwitch",
      "Merge",         "RefMerge",
      "Enter",         "RefEnter",
      "Exit",          "RefExit",
      "NextIteration", "RefNextIteration",
      "LoopCond",      "ControlTrigger",
      "_Send",         "_Recv",
      "NoOp",          "Assert",
      "Print"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Number of outputs of a node whose inputs are what its op takes: kernels rely
// on number and types of their inputs.
absl::StatusOr<int> CheckSignature(const graph::Node& node,
                                   absl::Span<const Tensor> inputs) {
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("op '", node.op(), "' is not known"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<tensorflow::DataType> types,
                           graph::InputTypes(*op_def, node.def()));
  if (types.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", inputs.size(), " inputs instead of ", types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (graph::BaseType(types[i]) != inputs[i].dtype()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its input ", i, " is ", graph::DataTypeName(inputs[i].dtype()),
          " instead of ", graph::DataTypeName(types[i])));
    }
  }
  return graph::OutputCount(*op_def, node.def());
}

}  // namespace

ConstantAnalysis::ConstantAnalysis(const graph::Graph& graph,
                                   const std::vector<NodeId>& order,
                                   KnownValues known,
                                   const ConstantAnalysisOptions& options)
    : graph_(graph),
      options_(options),
      known_(std::move(known)),
      is_constant_(graph.id_limit(), false) {
  absl::flat_hash_set<NodeId> has_known_values;
  for (const auto& [endpoint, unused] : known_) {
    has_known_values.insert(endpoint.node);
  }
  for (NodeId id : order) {
    const graph::Node& node = graph.node(id);
    if (options_.exclude_nodes.contains(node.name()) ||
        options_.exclude_ops.contains(node.op())) {
      continue;
    }
    is_constant_[id] =
        has_known_values.contains(id) ||
        (CanBeConstant(node) &&
         std::all_of(node.inputs().begin(), node.inputs().end(),
                     [&](const Endpoint& e) { return is_constant_[e.node]; }));
  }
}

bool ConstantAnalysis::CanBeConstant(const graph::Node& node) const {
  if (IsConst(node)) return true;
  if (node.inputs().empty() || IsControlFlow(node.op()) ||
      graph::IsStateful(node.op())) {
    return false;
  }
  const runtime::KernelEntry* kernel = runtime::AllKernels().Find(node.op());
  return kernel != nullptr && kernel->is_pure;
}

absl::StatusOr<Tensor> ConstantAnalysis::Evaluate(Endpoint endpoint) {
  // Depth-first with a stack of our own: a chain may be as long as the model.
  std::vector<NodeId> stack = {endpoint.node};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    bool ready = true;
    if (!values_.contains(id) && !known_.contains(Endpoint{id, 0})) {
      for (const Endpoint& e : graph_.node(id).inputs()) {
        if (!values_.contains(e.node) &&
            !known_.contains(Endpoint{e.node, 0})) {
          stack.push_back(e.node);
          ready = false;
        }
      }
    }
    if (!ready) continue;
    stack.pop_back();
    OPTFARM_RETURN_IF_ERROR(EvaluateNode(id));
  }
  if (const auto it = known_.find(endpoint); it != known_.end()) {
    return it->second;
  }
  const std::vector<Tensor>& outputs = values_.at(endpoint.node);
  if (endpoint.port >= static_cast<int>(outputs.size()) ||
      !outputs[endpoint.port].has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", graph_.node(endpoint.node).name(),
                     "' has no output ", endpoint.port));
  }
  return outputs[endpoint.port];
}

absl::Status ConstantAnalysis::EvaluateNode(NodeId id) {
  if (values_.contains(id) || known_.contains(Endpoint{id, 0})) {
    return absl::OkStatus();
  }
  const graph::Node& node = graph_.node(id);
  if (IsConst(node)) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, ConstValue(node));
    values_[id] = {std::move(value)};
    return absl::OkStatus();
  }
  const std::string what =
      absl::StrCat("evaluating node '", node.name(), "' (", node.op(), ")");
  std::vector<Tensor> inputs;
  for (const Endpoint& e : node.inputs()) {
    absl::StatusOr<Tensor> input = Evaluate(e);
    if (!input.ok()) return Annotate(input.status(), what);
    inputs.push_back(*std::move(input));
  }
  const absl::StatusOr<int> num_outputs = CheckSignature(node, inputs);
  if (!num_outputs.ok()) return Annotate(num_outputs.status(), what);
  absl::StatusOr<std::vector<Tensor>> outputs =
      runtime::EvaluateNode(node.def(), inputs, *num_outputs);
  if (!outputs.ok()) return Annotate(outputs.status(), what);
  values_[id] = *std::move(outputs);
  return absl::OkStatus();
}

std::vector<NodeId> ConstantAnalysis::WaitsFor(NodeId id) const {
  std::vector<NodeId> result;
  absl::flat_hash_set<NodeId> seen = {id};
  std::vector<NodeId> stack = {id};
  const auto visit = [&](NodeId source) {
    if (!seen.insert(source).second) return;
    if (is_constant_[source]) {
      stack.push_back(source);
    } else {
      result.push_back(source);
    }
  };
  while (!stack.empty()) {
    const graph::Node& node = graph_.node(stack.back());
    stack.pop_back();
    // The data input of a folded shape op counts as a control edge.
    for (const Endpoint& e : node.inputs()) visit(e.node);
    for (NodeId control : node.control_inputs()) visit(control);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace optfarm::transforms
