#include "engine/graph/control_flow_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::NodeDef;

bool IsIf(absl::string_view op) { return HasRole(op, OpRole::kIf); }
bool IsCase(absl::string_view op) { return HasRole(op, OpRole::kCase); }
bool IsWhile(absl::string_view op) { return HasRole(op, OpRole::kWhile); }

absl::StatusOr<AttrValue> FunctionAttr(const Node& node, const char* attr) {
  const AttrValue* value = node.FindAttr(attr);
  if (value != nullptr && value->value_case() == AttrValue::kFunc) {
    return *value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("attribute '", attr, "' is not a function"));
}

// The nodes around one call.
class Expansion {
 public:
  Expansion(NodeId id, Graph* graph)
      : graph_(*graph),
        name_(graph->node(id).name()),
        inputs_(graph->node(id).inputs().begin(),
                graph->node(id).inputs().end()),
        waits_(graph->node(id).control_inputs().begin(),
               graph->node(id).control_inputs().end()) {}

  absl::StatusOr<ControlFlowNodes> If(NodeId id);
  absl::StatusOr<ControlFlowNodes> Case(NodeId id);
  absl::StatusOr<ControlFlowNodes> While(NodeId id);

 private:
  absl::Status ReadBranchTypes(NodeId id);
  NodeId Add(NodeDef def, absl::Span<const Endpoint> inputs,
             absl::Span<const NodeId> controls = {}) {
    return graph_.Add(std::move(def), inputs, controls);
  }
  NodeDef Def(const char* suffix, const char* op) const {
    return MakeNodeDef(absl::StrCat(name_, "/", suffix), op);
  }
  NodeDef Def(const char* suffix, const char* op, DataType type) const {
    return MakeNodeDef(absl::StrCat(name_, "/", suffix), op, type);
  }
  // A new node that calls `function`.
  NodeId AddCall(const std::string& suffix, const AttrValue& function,
                 const std::vector<DataType>& in,
                 const std::vector<DataType>& out,
                 absl::Span<const Endpoint> inputs,
                 absl::Span<const NodeId> controls);
  // Calls `function` with `arguments` where the value of `alive` is.
  void AddBranch(const std::string& suffix, const AttrValue& function,
                 absl::Span<const Endpoint> arguments, Endpoint alive,
                 DataType alive_type);
  // The results of whichever branch runs.
  void MergeBranches();

  Graph& graph_;
  const std::string name_;
  const std::vector<Endpoint> inputs_;
  const std::vector<NodeId> waits_;
  std::vector<DataType> in_;
  // Of what says that a branch is taken.
  DataType pivot_type_ = tensorflow::DT_BOOL;
  ControlFlowNodes made_;
};

absl::Status Expansion::ReadBranchTypes(NodeId id) {
  const NodeDef& def = graph_.node(id).def();
  OPTFARM_ASSIGN_OR_RETURN(in_, GetTypes(def, "Tin"));
  OPTFARM_ASSIGN_OR_RETURN(made_.types, GetTypes(def, "Tout"));
  if (inputs_.size() == in_.size() + 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "has ", inputs_.size(), " inputs, 'Tin' says ", in_.size() + 1));
}

NodeId Expansion::AddCall(const std::string& suffix, const AttrValue& function,
                          const std::vector<DataType>& in,
                          const std::vector<DataType>& out,
                          absl::Span<const Endpoint> inputs,
                          absl::Span<const NodeId> controls) {
  NodeDef def = Def(suffix.c_str(), "StatefulPartitionedCall");
  (*def.mutable_attr())["f"] = function;
  auto* tin = (*def.mutable_attr())["Tin"].mutable_list();
  for (DataType type : in) tin->add_type(type);
  auto* tout = (*def.mutable_attr())["Tout"].mutable_list();
  for (DataType type : out) tout->add_type(type);
  const NodeId call = Add(std::move(def), inputs, controls);
  made_.calls.push_back(call);
  return call;
}

void Expansion::AddBranch(const std::string& suffix, const AttrValue& function,
                          absl::Span<const Endpoint> arguments, Endpoint alive,
                          DataType alive_type) {
  pivot_type_ = alive_type;
  const NodeId taken = Add(Def("pivot", "Identity", alive_type), {alive});
  AddCall(suffix, function, in_, made_.types, arguments, {taken});
}

void Expansion::MergeBranches() {
  const auto merge = [&](DataType type, const std::vector<Endpoint>& values) {
    NodeDef def = Def("merge", "Merge", type);
    SetInt(&def, "N", static_cast<int64_t>(values.size()));
    return Add(std::move(def), values);
  };
  for (size_t i = 0; i < made_.types.size(); ++i) {
    std::vector<Endpoint> values;
    for (NodeId call : made_.calls) {
      values.push_back({call, static_cast<int>(i)});
    }
    made_.results.push_back({merge(made_.types[i], values), 0});
  }
  if (!made_.types.empty()) return;
  // Whichever branch runs: what its pivot gives, when the call is done.
  std::vector<Endpoint> done;
  for (NodeId call : made_.calls) {
    const NodeId pivot = graph_.node(call).control_inputs()[0];
    done.push_back(
        {Add(Def("done", "Identity", pivot_type_), {{pivot, 0}}, {call}), 0});
  }
  made_.done = merge(pivot_type_, done);
}

// Both branches are called with what a Switch lets through; the branch that is
// not taken is dead, and Merge takes the other one's results.
absl::StatusOr<ControlFlowNodes> Expansion::If(NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue then_branch,
                           FunctionAttr(graph_.node(id), "then_branch"));
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue else_branch,
                           FunctionAttr(graph_.node(id), "else_branch"));
  OPTFARM_RETURN_IF_ERROR(ReadBranchTypes(id));
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType type,
      GetTypeOr(graph_.node(id).def(), "Tcond", tensorflow::DT_BOOL));
  if (type != tensorflow::DT_BOOL) {
    return absl::UnimplementedError(
        absl::StrCat("a condition of dtype ", DataTypeName(type),
                     " is not supported, only bool"));
  }
  const NodeId pivot =
      Add(Def("switch", "Switch", type), {inputs_[0], inputs_[0]}, waits_);
  std::vector<Endpoint> sides[2];
  for (size_t i = 0; i < in_.size(); ++i) {
    const NodeId pick = Add(Def("switch", "Switch", in_[i]),
                            {inputs_[i + 1], inputs_[0]}, waits_);
    for (int side : {0, 1}) sides[side].push_back({pick, side});
  }
  AddBranch("else", else_branch, sides[0], {pivot, 0}, type);
  AddBranch("then", then_branch, sides[1], {pivot, 1}, type);
  MergeBranches();
  return std::move(made_);
}

// One question after the other: is it this branch? What a Switch does not give
// to the branch goes on to the next question; the last branch takes the rest.
absl::StatusOr<ControlFlowNodes> Expansion::Case(NodeId id) {
  const AttrValue* branches = graph_.node(id).FindAttr("branches");
  const int count = branches == nullptr ? 0 : branches->list().func_size();
  if (count == 0) {
    return absl::InvalidArgumentError("attribute 'branches' has no function");
  }
  const AttrValue functions = *branches;
  OPTFARM_RETURN_IF_ERROR(ReadBranchTypes(id));
  constexpr DataType kIndex = tensorflow::DT_INT32;
  Endpoint index = {Add(Def("index", "Identity", kIndex), {inputs_[0]}, waits_),
                    0};
  std::vector<Endpoint> rest(inputs_.begin() + 1, inputs_.end());
  for (int k = 0; k < count; ++k) {
    AttrValue function;
    *function.mutable_func() = functions.list().func(k);
    const std::string suffix = absl::StrCat("branch", k);
    if (k == count - 1) {
      AddBranch(suffix, function, rest, index, kIndex);
      break;
    }
    NodeDef number = Def("number", "Const");
    SetType(&number, "dtype", kIndex);
    auto* value = (*number.mutable_attr())["value"].mutable_tensor();
    value->set_dtype(kIndex);
    value->mutable_tensor_shape();
    value->add_int_val(k);
    const Endpoint is_this = {
        Add(Def("is", "Equal", kIndex),
            {index, Endpoint{Add(std::move(number), {}), 0}}),
        0};
    std::vector<Endpoint> taken;
    for (size_t i = 0; i < in_.size(); ++i) {
      const NodeId pick =
          Add(Def("switch", "Switch", in_[i]), {rest[i], is_this});
      taken.push_back({pick, 1});
      rest[i] = {pick, 0};
    }
    const NodeId pivot = Add(Def("switch", "Switch", kIndex), {index, is_this});
    AddBranch(suffix, function, taken, {pivot, 1}, kIndex);
    index = {pivot, 0};
  }
  MergeBranches();
  return std::move(made_);
}

absl::StatusOr<ControlFlowNodes> Expansion::While(NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue cond,
                           FunctionAttr(graph_.node(id), "cond"));
  OPTFARM_ASSIGN_OR_RETURN(const AttrValue body,
                           FunctionAttr(graph_.node(id), "body"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           GetTypes(graph_.node(id).def(), "T"));
  if (inputs_.size() != types.size() || types.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", inputs_.size(), " inputs, 'T' says ", types.size()));
  }
  std::vector<Endpoint> merged;
  for (size_t i = 0; i < types.size(); ++i) {
    NodeDef enter = Def("enter", "Enter", types[i]);
    SetString(&enter, "frame_name", name_);
    const NodeId entered = Add(std::move(enter), {inputs_[i]}, waits_);
    NodeDef merge = Def("merge", "Merge", types[i]);
    SetInt(&merge, "N", 2);
    // The second input becomes the NextIteration below.
    merged.push_back({Add(std::move(merge), {{entered, 0}, {entered, 0}}), 0});
  }
  const NodeId condition =
      AddCall("cond", cond, types, {tensorflow::DT_BOOL}, merged, {});
  const NodeId loop_cond = Add(Def("loop_cond", "LoopCond"), {{condition, 0}});
  std::vector<Endpoint> within;
  for (size_t i = 0; i < types.size(); ++i) {
    const NodeId pick =
        Add(Def("switch", "Switch", types[i]), {merged[i], {loop_cond, 0}});
    within.push_back({pick, 1});
    made_.results.push_back(
        {Add(Def("exit", "Exit", types[i]), {{pick, 0}}), 0});
  }
  const NodeId iteration = AddCall("body", body, types, types, within, {});
  for (size_t i = 0; i < types.size(); ++i) {
    const NodeId next = Add(Def("next", "NextIteration", types[i]),
                            {{iteration, static_cast<int>(i)}});
    graph_.SetInput(merged[i].node, 1, {next, 0});
  }
  made_.types = types;
  return std::move(made_);
}

}  // namespace

NodeDef MakeNodeDef(const std::string& name, const std::string& op) {
  NodeDef def;
  def.set_name(name);
  def.set_op(op);
  return def;
}

NodeDef MakeNodeDef(const std::string& name, const std::string& op,
                    DataType type) {
  NodeDef def = MakeNodeDef(name, op);
  SetType(&def, "T", type);
  return def;
}

bool IsControlFlowCall(absl::string_view op) {
  return IsIf(op) || IsCase(op) || IsWhile(op);
}

absl::StatusOr<ControlFlowNodes> AddControlFlow(NodeId node, Graph* graph) {
  const std::string op = graph->node(node).op();
  Expansion expansion(node, graph);
  if (IsIf(op)) return expansion.If(node);
  return IsCase(op) ? expansion.Case(node) : expansion.While(node);
}

}  // namespace optfarm::graph
