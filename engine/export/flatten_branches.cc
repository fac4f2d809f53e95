#include "engine/export/flatten_branches.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/function_body.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"

namespace optfarm::exporting {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;

// Branches within branches, and the copies of their bodies.
constexpr int kMostBranches = 1000;
constexpr int kMostNodes = 200000;
// Ifs whose branches are looked at one by one, each in a copy of the graph.
constexpr size_t kMostTried = 64;
constexpr size_t kMostBytes = size_t{1} << 30;

// Two results that a choice stands between.
struct Choice {
  Endpoint then_result, else_result;
};

class Flattener {
 public:
  Flattener(absl::Span<const FedShape> inputs,
            absl::Span<const Endpoint> outputs, OpenBranches open, Graph* graph)
      : outputs_(outputs),
        open_(open),
        graph_(*graph),
        library_(graph->library()) {
    for (const FedShape& input : inputs) {
      shapes_.feeds[input.tensor] = input.shape;
      fed_.push_back(input.tensor.node);
    }
    for (const FunctionDef& function : library_.function()) {
      functions_.emplace(function.signature().name(), &function);
    }
  }

  bool HasBranches() const { return !Branches().empty(); }
  // Replaces those whose condition is known, until there is none.
  absl::Status TakeKnown();
  // Replaces the others by choices.
  absl::Status ChooseOthers();
  // Replaces those of which one branch alone can run; gives what is left out.
  absl::StatusOr<std::vector<std::string>> TakeThoseThatRun();
  // Whether the results of both branches fit each other everywhere, and
  // running both of them changes nothing.
  absl::StatusOr<bool> ChoicesFit() const;

 private:
  // The Ifs that outputs need.
  std::vector<NodeId> Branches() const;
  // Adds the body that a branch attribute names; gives what it returns.
  absl::StatusOr<std::vector<Endpoint>> AddBody(NodeId id,
                                                absl::string_view attribute);
  absl::StatusOr<const tensorflow::NameAttrList*> FunctionOf(
      const Node& node, absl::string_view attribute) const;
  absl::Status Take(NodeId id, bool condition);
  // Whether a run that takes this branch could succeed.
  absl::StatusOr<bool> CanRun(NodeId id, bool condition) const;
  absl::Status Choose(NodeId id);
  absl::Status Return(NodeId id, const std::vector<Endpoint>& results);
  // Whether running all of what AddBody has added changes nothing.
  bool HasNoEffects() const;
  // The condition as a scalar.
  Endpoint ScalarCondition(NodeId id, const graph::ShapeMap& shapes);

  const absl::Span<const Endpoint> outputs_;
  const OpenBranches open_;
  Graph& graph_;
  // Of its own, because nodes of bodies are copied while the graph changes.
  const tensorflow::FunctionDefLibrary library_;
  graph::FunctionIndex functions_;
  graph::ShapeOptions shapes_;
  std::vector<NodeId> fed_;
  std::vector<Choice> choices_;
  // Nodes of the bodies that were added.
  std::vector<std::vector<NodeId>> bodies_;
  int replaced_ = 0;
  size_t copied_bytes_ = 0;
};

std::vector<NodeId> Flattener::Branches() const {
  std::vector<NodeId> roots;
  for (const Endpoint& output : outputs_) roots.push_back(output.node);
  const std::vector<bool> needed = graph::ReachableFrom(graph_, roots, fed_);
  std::vector<NodeId> branches;
  for (NodeId id : graph_.Ids()) {
    if (needed[id] &&
        graph::HasRole(graph_.node(id).op(), graph::OpRole::kIf) &&
        std::find(fed_.begin(), fed_.end(), id) == fed_.end()) {
      branches.push_back(id);
    }
  }
  return branches;
}

absl::StatusOr<const tensorflow::NameAttrList*> Flattener::FunctionOf(
    const Node& node, absl::string_view attribute) const {
  const tensorflow::AttrValue* value = node.FindAttr(attribute);
  if (value == nullptr || !value->has_func() ||
      !functions_.contains(value->func().name())) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(), "': its ", attribute,
                     " is no function of the graph's library"));
  }
  return &value->func();
}

absl::StatusOr<std::vector<Endpoint>> Flattener::AddBody(
    NodeId id, absl::string_view attribute) {
  const Node& node = graph_.node(id);
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::NameAttrList* called,
                           FunctionOf(node, attribute));
  const FunctionDef& function = *functions_.at(called->name());
  copied_bytes_ += function.ByteSizeLong();
  if (++replaced_ > kMostBranches || copied_bytes_ > kMostBytes ||
      graph_.node_count() + function.node_def_size() > kMostNodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", node.name(),
                     "': branches within branches grow the graph "
                     "beyond ",
                     kMostBranches, " branches, ", kMostNodes, " nodes or ",
                     kMostBytes >> 20, " MB"));
  }
  // The condition stands in front.
  std::vector<Endpoint> arguments(node.inputs().begin() + 1,
                                  node.inputs().end());
  graph::FunctionBody body(function, called->attr(), functions_, node.name(),
                           graph::kNoNode, std::move(arguments), &graph_);
  OPTFARM_RETURN_IF_ERROR(body.Add());
  bodies_.push_back(body.nodes());
  return body.Results();
}

// The node stays, as an Identity, under its name and with what says that it is
// an output; who reads it reads the results themselves.
absl::Status Flattener::Return(NodeId id,
                               const std::vector<Endpoint>& results) {
  NodeDef* def = graph_.mutable_node(id)->mutable_def();
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           graph::GetTypes(*def, "Tout"));
  if (types.size() != results.size() || results.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", def->name(), "' has ", types.size(),
                     " outputs, and its branch returns ", results.size()));
  }
  std::vector<std::string> own;
  for (const auto& [name, value] : def->attr()) {
    if (!absl::StartsWith(name, "_")) own.push_back(name);
  }
  for (const std::string& name : own) def->mutable_attr()->erase(name);
  def->set_op(results.size() == 1 ? "Identity" : "IdentityN");
  if (results.size() == 1) {
    graph::SetType(def, "T", types[0]);
  } else {
    graph::SetTypes(def, "T", types);
  }
  graph_.SetInputs(id, results);
  for (size_t port = 0; port < results.size(); ++port) {
    graph_.RedirectUses({id, static_cast<int>(port)}, results[port], id);
  }
  return absl::OkStatus();
}

absl::Status Flattener::Take(NodeId id, bool condition) {
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<Endpoint> results,
      AddBody(id, condition ? "then_branch" : "else_branch"));
  return Return(id, results);
}

absl::Status Flattener::TakeKnown() {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    const std::vector<NodeId> branches = Branches();
    if (branches.empty()) return absl::OkStatus();
    OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                             graph::InferShapes(graph_, shapes_));
    for (NodeId id : branches) {
      const Node& node = graph_.node(id);
      if (node.inputs().empty()) continue;
      const graph::PartialValue* value = shapes.ValueOf(node.inputs()[0]);
      if (value == nullptr || !value->is_known() ||
          value->elements.size() != 1) {
        continue;
      }
      OPTFARM_RETURN_IF_ERROR(Take(id, *value->elements[0] != 0));
      has_changed = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Flattener::CanRun(NodeId id, bool condition) const {
  Graph taken = graph_.Clone();
  Flattener alone({}, outputs_, open_, &taken);
  alone.shapes_ = shapes_;
  alone.fed_ = fed_;
  OPTFARM_RETURN_IF_ERROR(alone.Take(id, condition));
  OPTFARM_RETURN_IF_ERROR(alone.TakeKnown());
  absl::flat_hash_set<NodeId> added;
  for (const std::vector<NodeId>& body : alone.bodies_) {
    added.insert(body.begin(), body.end());
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(taken, shapes_));
  return std::none_of(
      shapes.problems().begin(), shapes.problems().end(),
      [&](const auto& problem) { return added.contains(problem.node); });
}

absl::StatusOr<std::vector<std::string>> Flattener::TakeThoseThatRun() {
  std::vector<std::string> left_out;
  absl::flat_hash_set<std::string> seen;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    OPTFARM_RETURN_IF_ERROR(TakeKnown());
    for (NodeId id : Branches()) {
      const std::string name = graph_.node(id).name();
      if (!seen.insert(name).second || seen.size() > kMostTried) continue;
      OPTFARM_ASSIGN_OR_RETURN(const bool can_be_true, CanRun(id, true));
      OPTFARM_ASSIGN_OR_RETURN(const bool can_be_false, CanRun(id, false));
      if (can_be_true == can_be_false) continue;
      OPTFARM_RETURN_IF_ERROR(Take(id, can_be_true));
      left_out.push_back(absl::StrCat("the ", can_be_true ? "else" : "then",
                                      "-branch of '", name, "'"));
      has_changed = true;
      break;
    }
  }
  return left_out;
}

Endpoint Flattener::ScalarCondition(NodeId id, const graph::ShapeMap& shapes) {
  const Endpoint condition = graph_.node(id).inputs()[0];
  const graph::PartialShape& shape = shapes.Of(condition);
  if (shape.has_rank() && shape.rank() == 0) return condition;
  const std::string& name = graph_.node(id).name();
  NodeDef sizes;
  sizes.set_name(absl::StrCat(name, "/scalar_shape"));
  sizes.set_op("Const");
  graph::SetType(&sizes, "dtype", tensorflow::DT_INT32);
  tensorflow::TensorProto* value =
      (*sizes.mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tensorflow::DT_INT32);
  value->mutable_tensor_shape()->add_dim()->set_size(0);
  NodeDef reshape;
  reshape.set_name(absl::StrCat(name, "/condition"));
  reshape.set_op("Reshape");
  graph::SetType(&reshape, "T", tensorflow::DT_BOOL);
  graph::SetType(&reshape, "Tshape", tensorflow::DT_INT32);
  const NodeId none = graph_.Add(std::move(sizes), {});
  return {graph_.Add(std::move(reshape), {condition, {none, 0}}), 0};
}

bool Flattener::HasNoEffects() const {
  for (const std::vector<NodeId>& body : bodies_) {
    for (NodeId id : body) {
      if (graph::IsStateful(graph_.node(id).op()) &&
          !graph::HasRole(graph_.node(id).op(), graph::OpRole::kIf)) {
        return false;
      }
    }
  }
  return true;
}

absl::Status Flattener::Choose(NodeId id) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<DataType> types,
                           graph::GetTypes(graph_.node(id).def(), "Tout"));
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph_, shapes_));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> if_true,
                           AddBody(id, "then_branch"));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> if_false,
                           AddBody(id, "else_branch"));
  if (if_true.size() != types.size() || if_false.size() != types.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node '", graph_.node(id).name(), "' has ", types.size(),
                     " outputs, and its branches return ", if_true.size(),
                     " and ", if_false.size()));
  }
  const Endpoint condition = ScalarCondition(id, shapes);
  std::vector<Endpoint> results;
  for (size_t i = 0; i < types.size(); ++i) {
    NodeDef choice;
    choice.set_name(absl::StrCat(graph_.node(id).name(), "/choice"));
    choice.set_op("SelectV2");
    graph::SetType(&choice, "T", types[i]);
    if (open_ == OpenBranches::kOneRuns) {
      (*choice.mutable_attr())[graph::kBranchesAttr].set_s(
          graph_.node(id).name());
    }
    results.push_back(
        {graph_.Add(std::move(choice), {condition, if_true[i], if_false[i]}),
         0});
    choices_.push_back({if_true[i], if_false[i]});
  }
  return Return(id, results);
}

absl::Status Flattener::ChooseOthers() {
  while (true) {
    OPTFARM_RETURN_IF_ERROR(TakeKnown());
    const std::vector<NodeId> branches = Branches();
    if (branches.empty()) return absl::OkStatus();
    for (NodeId id : branches) {
      const auto condition = graph::GetType(graph_.node(id).def(), "Tcond");
      if (!condition.ok() || *condition != tensorflow::DT_BOOL ||
          graph_.node(id).inputs().empty()) {
        return absl::UnimplementedError("its condition is no boolean");
      }
      OPTFARM_RETURN_IF_ERROR(Choose(id));
    }
  }
}

absl::StatusOr<bool> Flattener::ChoicesFit() const {
  if (!HasNoEffects()) return false;
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           graph::InferShapes(graph_, shapes_));
  return std::all_of(
      choices_.begin(), choices_.end(), [&](const Choice& choice) {
        const graph::PartialShape& shape = shapes.Of(choice.then_result);
        const bool is_known = open_ == OpenBranches::kOneRuns
                                  ? shape.has_rank()
                                  : shape.is_static();
        return is_known && shape == shapes.Of(choice.else_result);
      });
}

}  // namespace

absl::Status FlattenBranches(absl::Span<const FedShape> inputs,
                             absl::Span<const Endpoint> outputs,
                             OpenBranches open, Graph* graph) {
  Flattener known(inputs, outputs, open, graph);
  if (!known.HasBranches()) return absl::OkStatus();
  OPTFARM_RETURN_IF_ERROR(known.TakeKnown());
  if (!known.HasBranches()) return absl::OkStatus();
  Graph chosen = graph->Clone();
  Flattener others(inputs, outputs, open, &chosen);
  if (!others.ChooseOthers().ok()) return absl::OkStatus();
  OPTFARM_ASSIGN_OR_RETURN(const bool fit, others.ChoicesFit());
  if (fit) *graph = std::move(chosen);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> LeaveOutBranches(
    absl::Span<const FedShape> inputs, absl::Span<const Endpoint> outputs,
    Graph* graph) {
  Flattener flattener(inputs, outputs, OpenBranches::kOneRuns, graph);
  return flattener.TakeThoseThatRun();
}

}  // namespace optfarm::exporting
