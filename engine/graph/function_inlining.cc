// A call's node becomes an Identity of what the body returns, so that nobody
// who reads the call has to change. A body that has something to wait for is
// tied to the call by one NoOp: it is dead where the call would be, and in the
// loop that the call is in.

#include "engine/graph/function_inlining.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/control_flow_calls.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/function_body.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::graph {
namespace {

using tensorflow::AttrValue;
using tensorflow::DataType;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;

constexpr int kMaxCallDepth = 100;
constexpr int kMaxNodes = 200000;
// Of all copies of bodies.
constexpr size_t kMaxCopiedBytes = size_t{1} << 30;

std::string Describe(const Node& node) {
  return absl::StrCat("node '", node.name(), "' (op ", node.op(), ")");
}

bool IsPlainCall(absl::string_view op) { return HasRole(op, OpRole::kCall); }
bool TakesFunctions(absl::string_view op) {
  return IsPlainCall(op) || IsControlFlowCall(op) || op == "RemoteCall" ||
         op == "SymbolicGradient";
}

FunctionIndex IndexOf(const Graph& graph) {
  FunctionIndex index;
  for (const FunctionDef& function : graph.library().function()) {
    index.emplace(function.signature().name(), &function);
  }
  return index;
}

bool IsCall(const FunctionIndex& library, const Node& node) {
  return TakesFunctions(node.op()) || library.contains(node.op());
}

std::vector<NodeId> NeededCalls(const Graph& graph,
                                const FunctionIndex& library,
                                absl::Span<const NodeId> roots,
                                absl::Span<const NodeId> fed) {
  const std::vector<bool> needed = ReachableFrom(graph, roots, fed);
  std::vector<NodeId> calls;
  for (NodeId id : graph.Ids()) {
    if (needed[id] && IsCall(library, graph.node(id)) &&
        std::find(fed.begin(), fed.end(), id) == fed.end()) {
      calls.push_back(id);
    }
  }
  return calls;
}

// A call in progress.
struct Call {
  NodeId node = kNoNode;
  int depth = 0;
};

// What is called, and with which attributes.
struct Callee {
  const FunctionDef* function = nullptr;
  FunctionAttributes attributes;
};

class Inliner {
 public:
  explicit Inliner(Graph* graph) : graph_(*graph), library_(IndexOf(*graph)) {}
  absl::Status Run(absl::Span<const NodeId> roots,
                   absl::Span<const NodeId> fed);

 private:
  absl::StatusOr<Callee> CalleeOf(const Node& node);
  absl::Status Expand(const Call& call);
  absl::Status ExpandFunction(const Call& call, const Callee& callee);
  absl::Status ExpandControlFlow(const Call& call);
  // Turns the call's node into an Identity of `results`.
  void Return(NodeId call, const std::vector<DataType>& types,
              const std::vector<Endpoint>& results, NodeId wait = kNoNode);
  NodeId Add(NodeDef def, absl::Span<const Endpoint> inputs,
             absl::Span<const NodeId> controls = {}) {
    return graph_.Add(std::move(def), inputs, controls);
  }

  absl::Status CheckGrowth(const FunctionDef& function);
  // Lets calls wait for what happens in their bodies.
  absl::Status AddEffects();

  Graph& graph_;
  const FunctionIndex library_;
  std::vector<Call> waiting_;
  size_t copied_bytes_ = 0;
  // By call: nodes of its body that do something.
  std::vector<std::pair<NodeId, std::vector<NodeId>>> effects_;
};

absl::StatusOr<Callee> Inliner::CalleeOf(const Node& node) {
  if (const auto it = library_.find(node.op()); it != library_.end()) {
    return Callee{it->second, node.def().attr()};
  }
  const AttrValue* f = node.FindAttr("f");
  if (!IsPlainCall(node.op()) || f == nullptr) {
    return absl::UnimplementedError(
        "this kind of call has no form without functions; give --outputs "
        "before this node, or remove it from the graph");
  }
  const auto it = library_.find(f->func().name());
  if (it == library_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function '", f->func().name(), "' is not in the graph's library"));
  }
  return Callee{it->second, f->func().attr()};
}

absl::Status Inliner::CheckGrowth(const FunctionDef& function) {
  copied_bytes_ += function.ByteSizeLong();
  if (graph_.node_count() + function.node_def_size() <= kMaxNodes &&
      copied_bytes_ <= kMaxCopiedBytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the calls of function '", function.signature().name(),
                   "' and others grow the graph beyond ", kMaxNodes,
                   " nodes or ", kMaxCopiedBytes >> 20, " MB"));
}

void Inliner::Return(NodeId call, const std::vector<DataType>& types,
                     const std::vector<Endpoint>& results, NodeId wait) {
  NodeDef* def = graph_.mutable_node(call)->mutable_def();
  def->clear_attr();
  def->set_op(results.empty()       ? "NoOp"
              : results.size() == 1 ? "Identity"
                                    : "IdentityN");
  if (results.size() == 1) SetType(def, "T", types[0]);
  if (results.size() > 1) {
    auto* list = (*def->mutable_attr())["T"].mutable_list();
    for (DataType type : types) list->add_type(type);
  }
  graph_.SetInputs(call, results);
  if (wait != kNoNode) graph_.AddControlInput(call, wait);
}

// A body may have loops: what happens within one cannot be waited for from
// outside, its Exit can. A branch that is not taken is not waited for.
absl::Status Inliner::AddEffects() {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           DataflowOrder(graph_));
  std::vector<int> depth(graph_.id_limit(), 0);
  const auto value_depth = [&](NodeId id) {
    return depth[id] - (IsExit(graph_.node(id).op()) ? 1 : 0);
  };
  for (NodeId id : order) {
    const Node& node = graph_.node(id);
    int& deepest = depth[id];
    for (const Endpoint& e : node.inputs()) {
      if (IsLoopEdge(graph_, node, e.node)) continue;
      deepest = std::max(deepest, value_depth(e.node));
    }
    for (NodeId c : node.control_inputs()) {
      deepest = std::max(deepest, value_depth(c));
    }
    if (IsEnter(node.op())) ++deepest;
  }
  for (const auto& [call, effects] : effects_) {
    std::vector<NodeId> waits;
    for (NodeId id : effects) {
      if (value_depth(id) == depth[call]) waits.push_back(id);
    }
    if (waits.empty()) continue;
    const std::string name = absl::StrCat(graph_.node(call).name(), "/done");
    graph_.AddControlInput(call,
                           Add(MakeNodeDef(name, "ControlTrigger"), {}, waits));
  }
  return absl::OkStatus();
}

absl::Status Inliner::ExpandFunction(const Call& call, const Callee& callee) {
  const std::string name = graph_.node(call.node).name();
  NodeDef signature_node =
      MakeNodeDef(name, callee.function->signature().name());
  *signature_node.mutable_attr() = callee.attributes;
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<DataType> in,
      InputTypes(callee.function->signature(), signature_node));
  OPTFARM_ASSIGN_OR_RETURN(
      const std::vector<DataType> out,
      OutputTypes(callee.function->signature(), signature_node));
  const auto inputs = graph_.node(call.node).inputs();
  if (in.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function '", callee.function->signature().name(), "' takes ",
        in.size(), " arguments, the call has ", inputs.size()));
  }
  std::vector<Endpoint> arguments;
  std::vector<NodeId> waits(graph_.node(call.node).control_inputs().begin(),
                            graph_.node(call.node).control_inputs().end());
  const std::vector<Endpoint> sources(inputs.begin(), inputs.end());
  for (size_t i = 0; i < sources.size(); ++i) {
    const NodeId argument =
        Add(MakeNodeDef(absl::StrCat(name, "/argument"), "Identity", in[i]),
            {sources[i]});
    arguments.push_back({argument, 0});
    waits.push_back(argument);
  }
  const NodeId gate =
      waits.empty()
          ? kNoNode
          : Add(MakeNodeDef(absl::StrCat(name, "/call"), "NoOp"), {}, waits);
  FunctionBody body(*callee.function, callee.attributes, library_, name, gate,
                    std::move(arguments), &graph_);
  OPTFARM_RETURN_IF_ERROR(body.Add());
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<Endpoint> results, body.Results());
  if (results.size() != out.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function '", callee.function->signature().name(), "' returns ",
        results.size(), " tensors, not ", out.size()));
  }
  std::vector<NodeId> effects;
  for (NodeId id : body.nodes()) {
    const Node& node = graph_.node(id);
    if (IsCall(library_, node)) waiting_.push_back({id, call.depth + 1});
    if (IsStateful(node.op()) || IsExit(node.op())) effects.push_back(id);
  }
  effects_.emplace_back(call.node, std::move(effects));
  Return(call.node, out, results, gate);
  return absl::OkStatus();
}

absl::Status Inliner::ExpandControlFlow(const Call& call) {
  OPTFARM_ASSIGN_OR_RETURN(const ControlFlowNodes nodes,
                           AddControlFlow(call.node, &graph_));
  for (NodeId inner : nodes.calls) waiting_.push_back({inner, call.depth + 1});
  Return(call.node, nodes.types, nodes.results, nodes.done);
  return absl::OkStatus();
}

absl::Status Inliner::Expand(const Call& call) {
  const Node& node = graph_.node(call.node);
  if (call.depth > kMaxCallDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("calls within calls go deeper than ", kMaxCallDepth,
                     ": a function may not call itself"));
  }
  if (IsControlFlowCall(node.op())) return ExpandControlFlow(call);
  OPTFARM_ASSIGN_OR_RETURN(const Callee callee, CalleeOf(node));
  OPTFARM_RETURN_IF_ERROR(CheckGrowth(*callee.function));
  return ExpandFunction(call, callee);
}

absl::Status Inliner::Run(absl::Span<const NodeId> roots,
                          absl::Span<const NodeId> fed) {
  for (NodeId id : NeededCalls(graph_, library_, roots, fed)) {
    waiting_.push_back({id, 0});
  }
  while (!waiting_.empty()) {
    const Call call = waiting_.back();
    waiting_.pop_back();
    const std::string what = Describe(graph_.node(call.node));
    const absl::Status status = Expand(call);
    if (!status.ok()) return Annotate(status, what);
  }
  return AddEffects();
}

}  // namespace

bool HasCalls(const Graph& graph, absl::Span<const NodeId> roots,
              absl::Span<const NodeId> fed) {
  return !NeededCalls(graph, IndexOf(graph), roots, fed).empty();
}

absl::Status InlineCalls(absl::Span<const NodeId> roots,
                         absl::Span<const NodeId> fed, Graph* graph) {
  return Inliner(graph).Run(roots, fed);
}

}  // namespace optfarm::graph
