#include "engine/transforms/layout/turned_graph.h"

#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/layout/layout_rules.h"
#include "engine/transforms/nodes/loop_nodes.h"
#include "engine/transforms/nodes/static_shapes.h"
#include "engine/transforms/nodes/unused_nodes.h"

namespace optfarm::transforms {

using graph::Endpoint;
using graph::NodeId;

absl::StatusOr<std::unique_ptr<TurnedGraph>> TurnedGraph::Create(
    graph::Graph* graph, TransformContext* context) {
  auto made = absl::WrapUnique(new TurnedGraph(graph, context));
  OPTFARM_ASSIGN_OR_RETURN(made->shapes_,
                           InferShapesWithInputs(*graph, *context));
  made->FindTransposes();
  made->FindRules();
  made->FindEdges();
  return made;
}

bool TurnedGraph::IsConst(Endpoint tensor) const {
  return graph::IsConst(graph_->node(tensor.node).op());
}

bool TurnedGraph::IsReshape(Endpoint tensor) const {
  return graph::IsReshape(graph_->node(tensor.node).op());
}

int64_t TurnedGraph::ElementBytes(Endpoint tensor) const {
  const auto& node = graph_->node(tensor.node).def();
  const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
  if (op_def == nullptr) return sizeof(float);
  const auto types = graph::OutputTypes(*op_def, node);
  if (!types.ok() || tensor.port >= static_cast<int>(types->size())) {
    return sizeof(float);
  }
  const size_t bytes = runtime::ElementSize((*types)[tensor.port]);
  return bytes == 0 ? sizeof(float) : static_cast<int64_t>(bytes);
}

// Somebody may ask for it, or wait for it.
bool TurnedGraph::MayVanish(NodeId id) const {
  const graph::Node& node = graph_->node(id);
  if (context_->IsInputOrOutput(node.name()) ||
      !node.control_inputs().empty()) {
    return false;
  }
  for (const graph::Use& use : node.uses()) {
    if (use.is_control()) return false;
  }
  return true;
}

void TurnedGraph::FindTransposes() {
  orders_.resize(graph_->id_limit());
  vanishes_.assign(graph_->id_limit(), false);
  const std::vector<bool> in_loop = NodesInLoops(*graph_);
  for (NodeId id : graph_->Ids()) {
    const graph::Node& node = graph_->node(id);
    if (!graph::IsTranspose(node.op()) || node.inputs().size() != 2 ||
        in_loop[id]) {
      continue;
    }
    auto order = ReadPermutation(shapes_.ValueOf(node.inputs()[1]));
    const graph::PartialShape& shape = shapes_.Of(node.inputs()[0]);
    if (!order.has_value() || order->empty() ||
        (shape.has_rank() && shape.rank() != static_cast<int>(order->size()))) {
      continue;
    }
    orders_[id] = *std::move(order);
    vanishes_[id] = MayVanish(id);
  }
}

void TurnedGraph::FindRules() {
  rules_.resize(graph_->id_limit());
  const std::vector<bool> in_loop = NodesInLoops(*graph_);
  for (NodeId id : graph_->Ids()) {
    const graph::Node& node = graph_->node(id);
    if (in_loop[id] || context_->IsInputOrOutput(node.name())) continue;
    const graph::PartialShape& shape = shapes_.Of({id, 0});
    if (!shape.has_rank()) continue;
    auto rule = FindLayoutRule({*graph_, shapes_, id});
    if (rule != nullptr &&
        rule->Output(IdentityOf(rule->rank())) == IdentityOf(shape.rank())) {
      rules_[id] = std::move(rule);
    }
  }
}

// Follows the Transposes that vanish back to what they turn.
TurnedEdge TurnedGraph::Resolve(NodeId consumer, int input) const {
  TurnedEdge edge;
  edge.consumer = consumer;
  edge.input = input;
  edge.source = graph_->node(consumer).inputs()[input];
  if (input == 0) edge.turn = orders_[consumer];
  // No graph has longer chains; a damaged one may go in circles.
  constexpr int kMostTransposes = 64;
  for (int i = 0; i < kMostTransposes && vanishes_[edge.source.node]; ++i) {
    const Permutation& order = orders_[edge.source.node];
    if (!edge.turn.empty() && edge.turn.size() != order.size()) break;
    edge.turn = edge.turn.empty() ? order : Composed(order, edge.turn);
    edge.source = graph_->node(edge.source.node).inputs()[0];
  }
  return edge;
}

void TurnedGraph::FindEdges() {
  for (NodeId id : graph_->Ids()) {
    if (vanishes_[id]) continue;
    const LayoutRule* rule = rules_[id].get();
    const int inputs = static_cast<int>(graph_->node(id).inputs().size());
    for (int input = 0; input < inputs; ++input) {
      TurnedEdge edge = Resolve(id, input);
      const graph::PartialShape& shape = shapes_.Of(edge.source);
      if (rule != nullptr) {
        for (int carried : rule->carried()) edge.is_carried |= carried == input;
      }
      if (edge.turn.empty()) {
        if (!edge.is_carried && rules_[edge.source.node] == nullptr) continue;
        if (!shape.has_rank()) continue;
        edge.turn = IdentityOf(shape.rank());
      }
      edges_.push_back(std::move(edge));
    }
  }
}

absl::Status TurnedGraph::ApplyRules(const LayoutStates& states,
                                     bool changes_readers,
                                     OperandEditor* editor) {
  for (size_t id = 0; id < states.size(); ++id) {
    if (states[id].empty() || rules_[id]->ChangesReaders() != changes_readers) {
      continue;
    }
    OPTFARM_RETURN_IF_ERROR(rules_[id]->Apply(states[id], editor));
    graph_->mutable_node(static_cast<NodeId>(id))
        ->mutable_def()
        ->mutable_attr()
        ->erase("_output_shapes");
    context_->CountChange();
  }
  return absl::OkStatus();
}

// A Transpose whose input keeps its order may serve again.
void TurnedGraph::NoteTransposes(const LayoutStates& states, bool reshapes,
                                 OperandEditor* editor) const {
  for (NodeId id = 0; id < static_cast<NodeId>(orders_.size()); ++id) {
    if (orders_[id].empty() || !vanishes_[id]) continue;
    const Endpoint source = graph_->node(id).inputs()[0];
    const bool is_moved = !states.empty() && !states[source.node].empty();
    if (!is_moved && !vanishes_[source.node] && !IsConst(source) &&
        !(reshapes && KeepsElements(shapes_.Of(source), orders_[id]))) {
      editor->NoteTranspose(source, orders_[id], id);
    }
  }
}

// A Transpose that has to stay turns as much as is left to turn.
absl::Status TurnedGraph::ConnectTranspose(const TurnedEdge& edge,
                                           const graph::PartialShape& shape,
                                           const Permutation& order,
                                           bool reshapes,
                                           OperandEditor* editor) {
  const graph::Node& node = graph_->node(edge.consumer);
  if (node.inputs()[0] == edge.source && order == orders_[edge.consumer]) {
    return absl::OkStatus();
  }
  tensorflow::NodeDef* def = graph_->mutable_node(edge.consumer)->mutable_def();
  const bool is_turned =
      !IsIdentity(order) && !(reshapes && KeepsElements(shape, order));
  if (!IsConst(edge.source) && is_turned) {
    graph::SetType(def, "Tperm", tensorflow::DT_INT32);
    graph_->SetInputs(edge.consumer, {edge.source, editor->OrderOf(order)});
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint turned,
                           editor->Transposed(edge.source, shape, order));
  def->set_op("Identity");
  def->mutable_attr()->erase("Tperm");
  graph_->SetInputs(edge.consumer, {turned});
  return absl::OkStatus();
}

absl::Status TurnedGraph::Connect(const TurnedEdge& edge,
                                  const LayoutStates& states, bool reshapes,
                                  OperandEditor* editor) {
  Permutation order = edge.turn;
  graph::PartialShape shape = shapes_.Of(edge.source);
  if (!states.empty() && !states[edge.source.node].empty()) {
    const Permutation out =
        rules_[edge.source.node]->Output(states[edge.source.node]);
    order = Composed(Inverse(out), order);
    if (shape.has_rank()) shape = Permuted(shape, out);
  }
  if (!states.empty() && edge.is_carried && !states[edge.consumer].empty()) {
    order = Composed(order, states[edge.consumer]);
  }
  if (edge.input == 0 && !orders_[edge.consumer].empty()) {
    return ConnectTranspose(edge, shape, order, reshapes, editor);
  }
  OPTFARM_ASSIGN_OR_RETURN(const Endpoint turned,
                           editor->Transposed(edge.source, shape, order));
  if (graph_->node(edge.consumer).inputs()[edge.input] != turned) {
    graph_->SetInput(edge.consumer, edge.input, turned);
  }
  return absl::OkStatus();
}

absl::Status TurnedGraph::Apply(const LayoutStates& states, bool reshapes) {
  // What nobody reads afterwards.
  std::vector<NodeId> left;
  for (NodeId id = 0; id < id_limit(); ++id) {
    if (!graph_->Has(id)) continue;
    if (vanishes_[id]) left.push_back(id);
    if (states.empty() || states[id].empty()) continue;
    for (const Endpoint& e : graph_->node(id).inputs()) left.push_back(e.node);
  }
  OperandEditor editor(graph_, reshapes);
  NoteTransposes(states, reshapes, &editor);
  for (const TurnedEdge& edge : edges_) {
    OPTFARM_RETURN_IF_ERROR(Connect(edge, states, reshapes, &editor));
  }
  OPTFARM_RETURN_IF_ERROR(ApplyRules(states, false, &editor));
  OPTFARM_RETURN_IF_ERROR(ApplyRules(states, true, &editor));
  RemoveUnusedWithInputs(std::move(left), *context_, graph_);
  return absl::OkStatus();
}

}  // namespace optfarm::transforms
