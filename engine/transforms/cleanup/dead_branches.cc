// Liveness, as TensorFlow's executor defines it at the run: a node is alive
// when all of its inputs are, a Merge when one of its data inputs is. Found as
// the least fixed point, so that a loop that is never entered is dead although
// its body feeds itself.

#include "engine/transforms/cleanup/dead_branches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/transforms/machinery/pattern.h"
#include "engine/transforms/nodes/constant_folding.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::NodeId;

// The output that each decided Switch gives its data to.
using Decisions = std::map<NodeId, int>;

bool IsMerge(const graph::Node& node) { return graph::IsMerge(node.op()); }

// Ops whose first output, when there is one at all, is their first input.
bool PassesItsInputOn(const graph::Node& node) {
  const std::string& op = node.op();
  return !node.inputs().empty() &&
         (graph::IsIdentity(op) || op == "Enter" || op == "Switch");
}

// The predicate's value; nullopt when it is only known at the run.
std::optional<bool> PredicateValue(const Graph& graph, Endpoint predicate,
                                   ConstantAnalysis* analysis) {
  // A chain cannot be longer than the graph; a cycle ends here.
  for (int steps = 0; steps < graph.node_count(); ++steps) {
    const graph::Node& node = graph.node(predicate.node);
    if (analysis->IsConstant(predicate.node)) {
      const absl::StatusOr<runtime::Tensor> value =
          analysis->Evaluate(predicate);
      if (!value.ok() || value->dtype() != tensorflow::DT_BOOL ||
          value->num_elements() != 1) {
        return std::nullopt;
      }
      return *value->data<bool>();
    }
    if (!PassesItsInputOn(node)) return std::nullopt;
    predicate = node.inputs()[0];
  }
  return std::nullopt;
}

absl::StatusOr<Decisions> Decide(const Graph& graph,
                                 const TransformContext& context) {
  ConstantAnalysisOptions options;
  for (const graph::TensorName& input : context.inputs()) {
    options.exclude_nodes.insert(input.node);
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> order,
                           graph::ExecutionOrder(graph));
  OPTFARM_ASSIGN_OR_RETURN(const graph::ShapeMap shapes,
                           InferShapesWithInputs(graph, context));
  ConstantAnalysis analysis(graph, order, KnownShapeValues(graph, shapes),
                            options);
  Decisions decisions;
  for (NodeId id : order) {
    const graph::Node& node = graph.node(id);
    if (node.op() != "Switch" || node.inputs().size() != 2 ||
        context.IsInput(node.name())) {
      continue;
    }
    const std::optional<bool> value =
        PredicateValue(graph, node.inputs()[1], &analysis);
    if (value.has_value()) decisions[id] = *value ? 1 : 0;
  }
  return decisions;
}

class Liveness {
 public:
  Liveness(const Graph& graph, const TransformContext& context,
           const Decisions& decisions)
      : decisions_(decisions), alive_(graph.id_limit(), false) {
    std::vector<int> pending(graph.id_limit(), 0);
    for (NodeId id : graph.Ids()) {
      const graph::Node& node = graph.node(id);
      pending[id] = IsMerge(node)
                        ? 1
                        : static_cast<int>(node.inputs().size() +
                                           node.control_inputs().size());
      if (node.inputs().empty() && node.control_inputs().empty()) {
        pending[id] = 0;
      }
      // What is fed is there whatever would compute it.
      if (context.IsInput(node.name())) pending[id] = 0;
      if (pending[id] == 0) MarkAlive(id);
    }
    while (!fresh_.empty()) {
      const NodeId id = fresh_.back();
      fresh_.pop_back();
      for (const graph::Use& use : graph.node(id).uses()) {
        if (!IsEdgeAlive(id, use.port) || alive_[use.consumer] ||
            (use.is_control() && IsMerge(graph.node(use.consumer)))) {
          continue;
        }
        if (--pending[use.consumer] == 0) MarkAlive(use.consumer);
      }
    }
  }

  bool IsAlive(NodeId id) const { return alive_[id]; }
  bool IsAlive(Endpoint e) const {
    return alive_[e.node] && IsEdgeAlive(e.node, e.port);
  }

 private:
  void MarkAlive(NodeId id) {
    alive_[id] = true;
    fresh_.push_back(id);
  }

  // Whether anything ever comes out of this port of a node that is alive. A
  // control edge from a Switch waits for the Switch alone.
  bool IsEdgeAlive(NodeId id, int port) const {
    const auto decision = decisions_.find(id);
    return decision == decisions_.end() || port == graph::kControlPort ||
           port == decision->second;
  }

  const Decisions& decisions_;
  std::vector<bool> alive_;
  std::vector<NodeId> fresh_;
};

// ERRORS: why the branches cannot be taken out.
absl::Status CheckDeclaredNames(const Graph& graph,
                                const TransformContext& context,
                                const Liveness& liveness) {
  for (const graph::TensorName& output : context.outputs()) {
    const NodeId id = graph.Find(output.node);
    if (id != graph::kNoNode && !liveness.IsAlive({id, output.port})) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the output '", ToString(output),
          "' is never computed with this value: it stands in the branch of a "
          "condition that is not taken"));
    }
  }
  for (const graph::TensorName& input : context.inputs()) {
    const NodeId id = graph.Find(input.node);
    if (id == graph::kNoNode) continue;
    const graph::Node& node = graph.node(id);
    if (std::all_of(node.inputs().begin(), node.inputs().end(),
                    [&](Endpoint e) { return liveness.IsAlive(e); }) &&
        std::all_of(node.control_inputs().begin(), node.control_inputs().end(),
                    [&](NodeId c) { return liveness.IsAlive(c); })) {
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the input '", ToString(input),
        "' stands in the branch of a condition that is not taken; leave it out "
        "of the inputs"));
  }
  return absl::OkStatus();
}

// Lets the node hand on `source` alone. It stays as an Identity when something
// knows it by name or waits for it.
void BecomeIdentity(NodeId id, Endpoint source, const TransformContext& context,
                    Graph* graph) {
  const std::string name = graph->node(id).name();
  bool is_needed = context.IsInputOrOutput(name) ||
                   !graph->node(id).control_inputs().empty();
  for (const graph::Use& use : graph->node(id).uses()) {
    is_needed = is_needed || use.port != 0;
  }
  if (is_needed) {
    tensorflow::NodeDef* def = graph->mutable_node(id)->mutable_def();
    tensorflow::NodeDef identity;
    graph::CopyAttr(*def, "T", &identity);
    def->set_op("Identity");
    def->mutable_attr()->swap(*identity.mutable_attr());
    graph->SetInputs(id, {source});
  } else {
    graph->RedirectUses({id, 0}, source);
    graph->Remove(id);
  }
}

// Takes the dead inputs away from a Merge that is alive.
absl::Status NarrowMerge(NodeId id, const TransformContext& context,
                         const Liveness& liveness, Graph* graph) {
  const graph::Node& merge = graph->node(id);
  std::vector<Endpoint> alive;
  int index = 0;
  for (size_t i = 0; i < merge.inputs().size(); ++i) {
    if (!liveness.IsAlive(merge.inputs()[i])) continue;
    alive.push_back(merge.inputs()[i]);
    index = static_cast<int>(i);
  }
  std::vector<NodeId> controls;
  for (NodeId control : merge.control_inputs()) {
    if (liveness.IsAlive(control)) controls.push_back(control);
  }
  if (controls.size() != merge.control_inputs().size()) {
    graph->ClearControlInputs(id);
    for (NodeId control : controls) graph->AddControlInput(id, control);
  }
  if (alive.size() == merge.inputs().size()) return absl::OkStatus();
  const bool tells_index = HasOtherOutputsRead(merge);
  if (alive.size() == 1) {
    if (tells_index) {
      const NodeId value =
          graph->Add(MakeConst(absl::StrCat(merge.name(), "/value_index"),
                               runtime::Tensor::Scalar<int32_t>(index)),
                     {}, {id}, id);
      graph->RedirectUses({id, 1}, {value, 0});
    }
    BecomeIdentity(id, alive[0], context, graph);
    return absl::OkStatus();
  }
  if (tells_index) {
    return absl::UnimplementedError(absl::StrCat(
        "node '", merge.name(),
        "' tells which of several inputs it took; taking one away would change "
        "their numbers"));
  }
  graph->SetInputs(id, alive);
  graph::SetInt(graph->mutable_node(id)->mutable_def(), "N",
                static_cast<int64_t>(alive.size()));
  return absl::OkStatus();
}

// The Switch gives its data to one side only, which reads the data itself.
void BypassSwitch(NodeId id, int side, const TransformContext& context,
                  Graph* graph) {
  const Endpoint data = graph->node(id).inputs()[0];
  graph->RedirectUses({id, side}, {id, 0});
  BecomeIdentity(id, data, context, graph);
}

// The declared outputs keep their names, so that side 1 of a Switch cannot
// become output 0 of an Identity.
absl::Status CheckOutputPorts(const Graph& graph,
                              const TransformContext& context,
                              const Decisions& decisions) {
  for (const graph::TensorName& output : context.outputs()) {
    const auto decision = decisions.find(graph.Find(output.node));
    if (decision == decisions.end() || output.port == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the output '", ToString(output),
                     "' is a side of a Switch, which goes away with its "
                     "condition; name what it switches instead"));
  }
  return absl::OkStatus();
}

// A Switch of the predicate itself only tells nodes without inputs which branch
// they belong to; what hands this on has done its duty.
void AddPivots(const Graph& graph, NodeId id, std::vector<NodeId>* freed) {
  const graph::Node& node = graph.node(id);
  if (!(node.inputs()[0] == node.inputs()[1])) return;
  for (const graph::Use& use : node.uses()) freed->push_back(use.consumer);
}

absl::Status TakeOut(const Decisions& decisions, TransformContext* context,
                     Graph* graph) {
  const Liveness liveness(*graph, *context, decisions);
  OPTFARM_RETURN_IF_ERROR(CheckDeclaredNames(*graph, *context, liveness));
  OPTFARM_RETURN_IF_ERROR(CheckOutputPorts(*graph, *context, decisions));
  std::vector<NodeId> dead, freed;
  const std::vector<NodeId> ids = graph->Ids();
  for (NodeId id : ids) {
    const bool is_alive = liveness.IsAlive(id);
    if (!is_alive) dead.push_back(id);
    if (is_alive && !decisions.contains(id)) continue;
    for (const Endpoint& e : graph->node(id).inputs()) freed.push_back(e.node);
    for (NodeId c : graph->node(id).control_inputs()) freed.push_back(c);
  }
  for (NodeId id : ids) {
    if (liveness.IsAlive(id) && IsMerge(graph->node(id))) {
      OPTFARM_RETURN_IF_ERROR(NarrowMerge(id, *context, liveness, graph));
    }
  }
  graph->RemoveAll(dead);
  context->CountChange(static_cast<int64_t>(dead.size()));
  for (const auto& [id, side] : decisions) {
    if (!graph->Has(id)) continue;
    AddPivots(*graph, id, &freed);
    BypassSwitch(id, side, *context, graph);
  }
  context->CountChange(static_cast<int64_t>(decisions.size()));
  context->CountChange(
      RemoveUnusedWithInputs(std::move(freed), *context, graph));
  return absl::OkStatus();
}

}  // namespace

absl::Status RemoveDeadBranches(TransformContext* context, Graph* graph) {
  // What a removed Merge handed on may be constant, and the next predicate.
  while (true) {
    OPTFARM_ASSIGN_OR_RETURN(const Decisions decisions,
                             Decide(*graph, *context));
    if (decisions.empty()) return absl::OkStatus();
    OPTFARM_RETURN_IF_ERROR(TakeOut(decisions, context, graph));
  }
}

}  // namespace optfarm::transforms
