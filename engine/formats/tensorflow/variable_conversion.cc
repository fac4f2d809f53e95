#include "engine/formats/tensorflow/variable_conversion.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::formats {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using tensorflow::DataType;
using tensorflow::NodeDef;

// Ops that hand a reference or a resource on as their first output or outputs.
constexpr absl::string_view kForwardingOps[] = {
    "Identity", "Switch", "Enter", "Exit", "Merge", "NextIteration"};

// "RefSwitch" -> "Switch"; the same name for other ops.
absl::string_view WithoutRef(absl::string_view op) {
  for (const absl::string_view plain : kForwardingOps) {
    if (op == absl::StrCat("Ref", plain)) return plain;
  }
  return op;
}

// How many first outputs of such an op carry the value.
int ForwardedOutputs(absl::string_view op) {
  return graph::IsSwitch(op) ? 2 : 1;
}

void SetConstant(tensorflow::TensorProto value, NodeDef* def) {
  def->set_op("Const");
  def->clear_attr();
  graph::SetType(def, "dtype", value.dtype());
  *(*def->mutable_attr())["value"].mutable_tensor() = std::move(value);
}

tensorflow::TensorProto TrueScalar() {
  tensorflow::TensorProto value;
  value.set_dtype(tensorflow::DT_BOOL);
  value.mutable_tensor_shape();
  value.add_bool_val(true);
  return value;
}

class Converter {
 public:
  explicit Converter(Graph* graph) : graph_(graph) {}

  absl::Status Convert(NodeId variable, tensorflow::TensorProto value);

 private:
  // Adapts the node that reads `use` of the variable.
  absl::Status AdaptReader(const graph::Use& use);
  absl::Status AdaptResourceReader(NodeId id, const graph::Use& use);
  absl::Status CheckReads(NodeId id, int input) const;
  void PassOn(NodeId id);
  void MakeRead(NodeId id, absl::string_view op);
  absl::Status MakeGather(NodeId id);
  void MakeTrue(NodeId id);
  absl::Status Refuse(NodeId id) const;

  Graph* graph_;
  std::string variable_;
  bool is_resource_ = false;
  DataType dtype_ = tensorflow::DT_INVALID;
  // Outputs that carry the variable and whose readers are still to be adapted.
  std::vector<Endpoint> open_;
  absl::flat_hash_set<NodeId> passed_;
};

absl::Status Converter::Convert(NodeId variable,
                                tensorflow::TensorProto value) {
  NodeDef* def = graph_->mutable_node(variable)->mutable_def();
  variable_ = def->name();
  is_resource_ = graph::HasRole(def->op(), graph::OpRole::kResourceVariable);
  dtype_ = value.dtype();
  graph_->ClearControlInputs(variable);
  SetConstant(std::move(value), def);
  passed_.clear();
  open_ = {{variable, 0}};
  while (!open_.empty()) {
    const Endpoint end = open_.back();
    open_.pop_back();
    for (const graph::Use& use : graph_->UsesOf(end)) {
      OPTFARM_RETURN_IF_ERROR(AdaptReader(use));
    }
  }
  return absl::OkStatus();
}

absl::Status Converter::AdaptReader(const graph::Use& use) {
  const NodeId id = use.consumer;
  if (passed_.contains(id)) return absl::OkStatus();
  const std::string& op = graph_->node(id).op();
  const absl::string_view plain = WithoutRef(op);
  // The second input of Switch is the predicate, which no variable is.
  const bool passes = absl::c_linear_search(kForwardingOps, plain) &&
                      (!graph::IsSwitch(plain) || use.input == 0);
  if (passes && (is_resource_ || plain != op)) {
    PassOn(id);
    return absl::OkStatus();
  }
  if (op == "IsVariableInitialized") {
    MakeTrue(id);
    return absl::OkStatus();
  }
  return is_resource_ ? AdaptResourceReader(id, use)
                      : CheckReads(id, use.input);
}

void Converter::PassOn(NodeId id) {
  passed_.insert(id);
  NodeDef* def = graph_->mutable_node(id)->mutable_def();
  def->set_op(std::string(WithoutRef(def->op())));
  graph::SetType(def, "T", dtype_);
  for (int port = 0; port < ForwardedOutputs(def->op()); ++port) {
    open_.push_back({id, port});
  }
}

absl::Status Converter::AdaptResourceReader(NodeId id, const graph::Use& use) {
  const std::string op = graph_->node(id).op();
  if (use.input == 0) {
    if (graph::HasRole(op, graph::OpRole::kReadVariable)) {
      MakeRead(id, "Identity");
      return absl::OkStatus();
    }
    if (op == "VariableShape") {
      MakeRead(id, "Shape");
      return absl::OkStatus();
    }
    if (op == "VarIsInitializedOp") {
      MakeTrue(id);
      return absl::OkStatus();
    }
    if (op == "ResourceGather" || op == "ResourceGatherNd") {
      return MakeGather(id);
    }
  }
  return Refuse(id);
}

void Converter::MakeRead(NodeId id, absl::string_view op) {
  NodeDef* def = graph_->mutable_node(id)->mutable_def();
  def->set_op(std::string(op));
  def->mutable_attr()->erase("dtype");
  graph::SetType(def, "T", dtype_);
}

absl::Status Converter::MakeGather(NodeId id) {
  NodeDef* def = graph_->mutable_node(id)->mutable_def();
  const bool is_nd = def->op() == "ResourceGatherNd";
  def->set_op(is_nd ? "GatherNd" : "GatherV2");
  def->mutable_attr()->erase("dtype");
  def->mutable_attr()->erase("validate_indices");
  graph::SetType(def, "Tparams", dtype_);
  if (is_nd) return absl::OkStatus();
  const Node& node = graph_->node(id);
  if (node.inputs().size() != 2) return Refuse(id);
  NodeDef axis;
  axis.set_name(absl::StrCat(node.name(), "/axis"));
  axis.set_device(node.device());
  tensorflow::TensorProto zero;
  zero.set_dtype(tensorflow::DT_INT32);
  zero.mutable_tensor_shape();
  zero.add_int_val(0);
  // Only with batch dimensions does gathering start at another axis.
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(*def, "batch_dims", 0));
  zero.set_int_val(0, static_cast<int32_t>(batch_dims));
  SetConstant(std::move(zero), &axis);
  graph::SetType(def, "Taxis", tensorflow::DT_INT32);
  std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
  inputs.push_back({graph_->Add(std::move(axis), {}, {}, id), 0});
  graph_->SetInputs(id, inputs);
  return absl::OkStatus();
}

void Converter::MakeTrue(NodeId id) {
  graph_->SetInputs(id, {});
  SetConstant(TrueScalar(), graph_->mutable_node(id)->mutable_def());
}

// A reader of a reference may be left as it is unless it wants to write.
absl::Status Converter::CheckReads(NodeId id, int input) const {
  const Node& node = graph_->node(id);
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return absl::OkStatus();
  const auto types = graph::InputTypes(*op_def, node.def());
  if (types.ok() && input < static_cast<int>(types->size()) &&
      graph::IsRefType((*types)[input])) {
    return Refuse(id);
  }
  return absl::OkStatus();
}

absl::Status Converter::Refuse(NodeId id) const {
  const Node& node = graph_->node(id);
  const std::string what =
      absl::StrCat("node '", node.name(), "' (op ", node.op(),
                   "), which the outputs need, ");
  if (graph::FindOpDef(node.op()) == nullptr ||
      absl::StrContains(node.op(), "Partitioned") ||
      absl::c_linear_search(
          std::initializer_list<absl::string_view>{"While", "StatelessWhile",
                                                   "If", "StatelessIf"},
          node.op())) {
    return absl::UnimplementedError(
        absl::StrCat(what, "takes variable '", variable_,
                     "' into a function; inline the functions first, or keep "
                     "the variable (--variable_names_blacklist)"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, "writes to variable '", variable_,
                   "', which becomes a constant; name outputs that do not "
                   "train, or leave updates out (--drop_updates)"));
}

}  // namespace

absl::Status ConvertVariables(VariableValues values, Graph* graph) {
  Converter converter(graph);
  // In file order, so that the same model gives the same names and messages.
  std::vector<NodeId> variables;
  for (const auto& [id, value] : values) variables.push_back(id);
  std::sort(variables.begin(), variables.end());
  for (const NodeId id : variables) {
    OPTFARM_RETURN_IF_ERROR(converter.Convert(id, std::move(values[id])));
  }
  return absl::OkStatus();
}

}  // namespace optfarm::formats
