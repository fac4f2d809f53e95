#include "engine/inspect/compatibility.h"

#include <google/protobuf/util/message_differencer.h>

#include <map>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "engine/graph/function_inlining.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/transforms/machinery/catalog.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::inspect {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;

struct Problem {
  std::string what;
  std::string remedy;
};

// What takes an op away, whatever is wrong with it. These name our transforms
// and commands, which the row of an op, two rooms below, does not know.
struct OpRemedy {
  const char* op;
  const char* remedy;
};
constexpr OpRemedy kOpRemedies[] = {
    {"AddV2", "rename_op(old_op_name=AddV2, new_op_name=Add)"},
    {"Assert", "remove_control_dependencies, then strip_unused_nodes"},
    {"BatchMatMulV2",
     "rename_op(old_op_name=BatchMatMulV2, new_op_name=BatchMatMul), if both "
     "sides have the same batch dimensions"},
    {"BatchNormWithGlobalNormalization", "fold_old_batch_norms"},
    {"CheckNumerics", "remove_nodes(op=CheckNumerics)"},
    {"EnsureShape", "remove_nodes(op=EnsureShape)"},
    {"FusedBatchNorm", "fold_old_batch_norms"},
    {"FusedBatchNormV2", "fold_old_batch_norms"},
    {"FusedBatchNormV3", "fold_old_batch_norms"},
    {"PartitionedCall", "inline_partitionedcall"},
    {"PreventGradient", "remove_nodes(op=PreventGradient)"},
    {"ReadVariableOp", "optctl graph freeze"},
    {"SelectV2",
     "rename_op(old_op_name=SelectV2, new_op_name=Select), if its inputs have "
     "the same shape"},
    {"StatefulPartitionedCall", "inline_partitionedcall"},
    {"VarHandleOp", "optctl graph freeze"},
    {"Variable", "optctl graph freeze"},
    {"VariableV2", "optctl graph freeze"},
};

// Whether the remedy is a command, or begins with a transform of this build.
bool IsThere(absl::string_view remedy) {
  const absl::string_view name = remedy.substr(0, remedy.find_first_of("(, "));
  return name == "optctl" || transforms::FindTransform(name).ok();
}

std::string RemedyOfOp(const Graph& graph, const Node& node) {
  for (const OpRemedy& known : kOpRemedies) {
    if (node.op() == known.op && IsThere(known.remedy)) return known.remedy;
  }
  const bool all_constant =
      !node.inputs().empty() &&
      absl::c_all_of(node.inputs(), [&](const graph::Endpoint& input) {
        return graph::IsConst(graph.node(input.node).op());
      });
  if (all_constant && runtime::AllKernels().Find(node.op()) != nullptr) {
    return "fold_constants";
  }
  return "";
}

void FindRuntimeProblems(const Graph& graph, const Node& node,
                         std::vector<Problem>* problems) {
  const runtime::KernelEntry* kernel = runtime::AllKernels().Find(node.op());
  if (kernel == nullptr) {
    problems->push_back({"has no kernel", RemedyOfOp(graph, node)});
    return;
  }
  const absl::Status made = kernel->Make(node.def()).status();
  if (!made.ok()) {
    problems->push_back({std::string(made.message()), RemedyOfOp(graph, node)});
  }
}

std::string RemoveAttribute(const Node& node, const std::string& name) {
  return absl::StrCat("remove_attribute(attribute_name=", name,
                      ", op_name=", node.op(), ")");
}

void FindAttributeProblems(const Node& node, const tensorflow::OpDef& op_def,
                           CompatibilityTarget target,
                           std::vector<Problem>* problems) {
  const std::map<std::string, tensorflow::AttrValue> attrs(
      node.def().attr().begin(), node.def().attr().end());
  for (const auto& [name, value] : attrs) {
    if (name.empty() || name[0] == '_') continue;
    const auto* attr_def = graph::FindAttrDef(op_def, name);
    if (attr_def == nullptr) {
      problems->push_back(
          {absl::StrCat("attribute '", name, "' is in no version we know"),
           absl::StrCat(RemoveAttribute(node, name),
                        ", if it has its default value")});
      continue;
    }
    if (target == CompatibilityTarget::kTensorFlow14 &&
        graph::IsLateAttribute(*attr_def)) {
      const bool removable = google::protobuf::util::MessageDifferencer::Equals(
          value, attr_def->default_value());
      problems->push_back(
          {absl::StrCat("attribute '", name, "' came after TensorFlow 1.4",
                        removable ? "" : ", and has not its default value"),
           removable ? RemoveAttribute(node, name) : ""});
    }
    const auto& allowed = attr_def->allowed_values().list().type();
    if (value.value_case() == tensorflow::AttrValue::kType &&
        !allowed.empty() &&
        !absl::c_linear_search(allowed, static_cast<int>(value.type()))) {
      problems->push_back({absl::StrCat("does not take ", name, "=",
                                        graph::DataTypeName(value.type())),
                           ""});
    }
  }
}

// The layers on quantized values that came after TensorFlow 1.4 have been
// registered with kernels of oneDNN (MKL) alone.
bool IsOnlyOneDnn(absl::string_view op) {
  return absl::StartsWith(op, "Quantized") &&
         graph::RowOf(op).origin == graph::Origin::kLaterTensorFlow;
}

void FindTensorFlowProblems(const Graph& graph, const Node& node,
                            CompatibilityTarget target,
                            std::vector<Problem>* problems) {
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) {
    problems->push_back(
        {"is not in our table of TensorFlow's ops: newer than it, or another "
         "program's own",
         RemedyOfOp(graph, node)});
    return;
  }
  switch (graph::RowOf(node.op()).origin) {
    case graph::Origin::kTensorFlow14:
      FindAttributeProblems(node, *op_def, target, problems);
      return;
    case graph::Origin::kLaterTensorFlow:
      if (target == CompatibilityTarget::kLaterTensorFlow) {
        if (IsOnlyOneDnn(node.op())) {
          problems->push_back(
              {"has kernels only in builds of TensorFlow with oneDNN", ""});
        }
        FindAttributeProblems(node, *op_def, target, problems);
        return;
      }
      problems->push_back(
          {"came after TensorFlow 1.4", RemedyOfOp(graph, node)});
      return;
    case graph::Origin::kOtherFormats:
      problems->push_back(
          {"is an op of ONNX and TensorFlow Lite, which "
           "TensorFlow does not have",
           RemedyOfOp(graph, node)});
      return;
  }
}

// Problems by op, text and remedy, in the order in which they are found.
class ProblemList {
 public:
  void Add(const Node& node, Problem problem) {
    const auto [place, is_new] = places_.try_emplace(
        {node.op(), problem.what, problem.remedy}, found_.size());
    if (is_new) {
      found_.push_back(
          {node.op(), problem.what, problem.remedy, 0, node.name()});
    }
    ++found_[place->second].nodes;
  }

  std::vector<Incompatibility> Take() && { return std::move(found_); }

 private:
  std::vector<Incompatibility> found_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> places_;
};

std::vector<Incompatibility> FindInGraph(const Graph& graph,
                                         absl::Span<const NodeId> inputs,
                                         absl::Span<const NodeId> outputs,
                                         CompatibilityTarget target) {
  std::set<std::string> functions;
  for (const auto& function : graph.library().function()) {
    functions.insert(function.signature().name());
  }
  const std::vector<bool> needed = graph::ReachableFrom(graph, outputs, inputs);
  ProblemList list;
  for (const NodeId id : graph.Ids()) {
    const Node& node = graph.node(id);
    if (functions.contains(node.op())) continue;
    std::vector<Problem> problems;
    if (target == CompatibilityTarget::kRuntime) {
      FindRuntimeProblems(graph, node, &problems);
    } else {
      FindTensorFlowProblems(graph, node, target, &problems);
    }
    for (Problem& problem : problems) {
      if (!outputs.empty() && !needed[id]) {
        problem.remedy = "strip_unused_nodes";
      }
      list.Add(node, std::move(problem));
    }
  }
  return std::move(list).Take();
}

}  // namespace

std::vector<Incompatibility> FindIncompatibilities(
    const Graph& graph, absl::Span<const NodeId> inputs,
    absl::Span<const NodeId> outputs, CompatibilityTarget target) {
  const std::vector<NodeId> all =
      outputs.empty() ? graph.Ids() : std::vector<NodeId>();
  const absl::Span<const NodeId> roots = outputs.empty() ? all : outputs;
  if (target == CompatibilityTarget::kRuntime &&
      graph::HasCalls(graph, roots, inputs)) {
    // What sessions do before they look for kernels. Nodes keep their ids. A
    // call that cannot be inlined is reported as the op that it is.
    Graph inlined = graph.Clone();
    if (graph::InlineCalls(roots, inputs, &inlined).ok()) {
      return FindInGraph(inlined, inputs, outputs, target);
    }
  }
  return FindInGraph(graph, inputs, outputs, target);
}

}  // namespace optfarm::inspect
