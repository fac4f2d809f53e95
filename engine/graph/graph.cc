#include "engine/graph/graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/nearest_names.h"
#include "base/status_macros.h"

namespace optfarm::graph {
const tensorflow::AttrValue* Node::FindAttr(absl::string_view name) const {
  const auto it = def_.attr().find(std::string(name));
  return it == def_.attr().end() ? nullptr : &it->second;
}

absl::StatusOr<Graph> Graph::FromDef(tensorflow::GraphDef def) {
  Graph graph;
  graph.versions_ = std::move(*def.mutable_versions());
  graph.library_ = std::move(*def.mutable_library());
  graph.nodes_.reserve(def.node_size());
  std::vector<google::protobuf::RepeatedPtrField<std::string>> inputs;
  inputs.reserve(def.node_size());
  for (tensorflow::NodeDef& node : *def.mutable_node()) {
    if (node.name().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("node number ", inputs.size(), " (op '", node.op(),
                       "') has no name"));
    }
    if (graph.by_name_.contains(node.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("two nodes have the name '", node.name(),
                       "'; names must be unique in a graph"));
    }
    inputs.push_back(std::move(*node.mutable_input()));
    node.clear_input();
    graph.Add(std::move(node), {});
  }
  for (NodeId id = 0; id < graph.id_limit(); ++id) {
    const std::string& name = graph.nodes_[id]->name();
    std::vector<Endpoint> data;
    for (const std::string& text : inputs[id]) {
      absl::StatusOr<TensorName> parsed = ParseTensorName(text);
      if (!parsed.ok()) {
        return Annotate(
            parsed.status(),
            absl::StrCat("input '", text, "' of node '", name, "'"));
      }
      absl::StatusOr<NodeId> source = graph.Get(parsed->node);
      if (!source.ok()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "node '", name, "' reads '", text,
            "', which is not in the graph: ", source.status().message()));
      }
      if (parsed->is_control()) {
        graph.AddControlInput(id, *source);
      } else {
        data.push_back({*source, parsed->port});
      }
    }
    graph.SetInputs(id, data);
  }
  return graph;
}

namespace {

void WriteInputs(const Graph& graph, const Node& node,
                 tensorflow::NodeDef* def) {
  for (const Endpoint& e : node.inputs()) def->add_input(graph.NameOf(e));
  for (NodeId c : node.control_inputs()) {
    def->add_input(ToString(graph.node(c).name(), kControlPort));
  }
}

}  // namespace

tensorflow::GraphDef Graph::ToDef() const {
  tensorflow::GraphDef def;
  def.mutable_node()->Reserve(live_count_);
  for (NodeId id = first_; id != kNoNode; id = nodes_[id]->next_) {
    tensorflow::NodeDef* out = def.add_node();
    *out = nodes_[id]->def_;
    WriteInputs(*this, *nodes_[id], out);
  }
  *def.mutable_versions() = versions_;
  if (library_.ByteSizeLong() > 0) *def.mutable_library() = library_;
  return def;
}

tensorflow::GraphDef Graph::TakeDef() && {
  tensorflow::GraphDef def;
  def.mutable_node()->Reserve(live_count_);
  for (NodeId id = first_; id != kNoNode; id = nodes_[id]->next_) {
    Node& node = *nodes_[id];
    for (const Endpoint& e : node.inputs_) node.def_.add_input(NameOf(e));
    for (NodeId c : node.control_inputs_) {
      node.def_.add_input(ToString(nodes_[c]->name(), kControlPort));
    }
  }
  // Names are needed until the last input is written, so moving comes second.
  for (NodeId id = first_; id != kNoNode; id = nodes_[id]->next_) {
    *def.add_node() = std::move(nodes_[id]->def_);
  }
  *def.mutable_versions() = std::move(versions_);
  if (library_.ByteSizeLong() > 0) *def.mutable_library() = std::move(library_);
  *this = Graph();
  return def;
}

Graph Graph::Clone() const {
  Graph copy;
  copy.nodes_.reserve(nodes_.size());
  for (const auto& node : nodes_) {
    copy.nodes_.push_back(std::make_unique<Node>(*node));
  }
  copy.by_name_ = by_name_;
  copy.first_ = first_;
  copy.last_ = last_;
  copy.live_count_ = live_count_;
  copy.versions_ = versions_;
  copy.library_ = library_;
  return copy;
}

bool Graph::Has(NodeId id) const {
  return id >= 0 && id < id_limit() && !nodes_[id]->removed_;
}

const Node& Graph::node(NodeId id) const {
  OPTFARM_CHECK(Has(id));
  return *nodes_[id];
}

Node* Graph::mutable_node(NodeId id) {
  OPTFARM_CHECK(Has(id));
  return nodes_[id].get();
}

NodeId Graph::Find(absl::string_view name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? kNoNode : it->second;
}

absl::StatusOr<NodeId> Graph::Get(absl::string_view name) const {
  const NodeId id = Find(name);
  if (id != kNoNode) return id;
  std::vector<std::string> names;
  names.reserve(by_name_.size());
  for (const auto& [known, unused] : by_name_) names.push_back(known);
  std::sort(names.begin(), names.end());
  return absl::NotFoundError(absl::StrCat("there is no node '", name,
                                          "' in the graph",
                                          NearestNamesHint(name, names)));
}

absl::StatusOr<Endpoint> Graph::Resolve(const TensorName& name) const {
  OPTFARM_ASSIGN_OR_RETURN(NodeId id, Get(name.node));
  return Endpoint{id, std::max(name.port, 0)};
}

std::string Graph::NameOf(Endpoint endpoint) const {
  return ToString(node(endpoint.node).name(), endpoint.port);
}

std::vector<NodeId> Graph::Ids() const {
  std::vector<NodeId> ids;
  ids.reserve(live_count_);
  for (NodeId id = first_; id != kNoNode; id = nodes_[id]->next_) {
    ids.push_back(id);
  }
  return ids;
}

NodeId Graph::Add(tensorflow::NodeDef def, absl::Span<const Endpoint> inputs,
                  absl::Span<const NodeId> control_inputs, NodeId before) {
  OPTFARM_CHECK(!def.name().empty());
  const NodeId id = id_limit();
  def.clear_input();
  if (by_name_.contains(def.name())) def.set_name(FreeName(def.name()));
  by_name_.emplace(def.name(), id);
  nodes_.push_back(std::make_unique<Node>());
  nodes_.back()->def_ = std::move(def);
  Link(id, before);
  ++live_count_;
  SetInputs(id, inputs);
  for (NodeId source : control_inputs) AddControlInput(id, source);
  return id;
}

void Graph::Remove(NodeId id) { RemoveAll({id}); }

void Graph::RemoveAll(absl::Span<const NodeId> ids) {
  for (NodeId id : ids) {
    if (!Has(id)) continue;
    SetInputs(id, {});
    ClearControlInputs(id);
  }
  for (NodeId id : ids) {
    if (!Has(id)) continue;
    Node& node = *nodes_[id];
    OPTFARM_CHECK(node.uses_.empty());
    Unlink(id);
    by_name_.erase(node.name());
    node = Node();
    node.removed_ = true;
    --live_count_;
  }
}

void Graph::Rename(NodeId id, absl::string_view name) {
  Node* node = mutable_node(id);
  if (node->name() == name) return;
  const std::string free = FreeName(name);
  by_name_.erase(node->name());
  by_name_.emplace(free, id);
  node->def_.set_name(free);
}

std::string Graph::FreeName(absl::string_view name) const {
  if (!by_name_.contains(name)) return std::string(name);
  for (int i = 1;; ++i) {
    std::string candidate = absl::StrCat(name, "_", i);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

void Graph::SetInput(NodeId consumer, int index, Endpoint source) {
  Node* node = mutable_node(consumer);
  OPTFARM_CHECK(index >= 0 && index < static_cast<int>(node->inputs_.size()));
  OPTFARM_CHECK(Has(source.node) && source.port >= 0);
  Endpoint& slot = node->inputs_[index];
  RemoveUse(slot.node, {consumer, slot.port, index});
  slot = source;
  AddUse(source.node, {consumer, source.port, index});
}

void Graph::SetInputs(NodeId consumer, absl::Span<const Endpoint> inputs) {
  Node* node = mutable_node(consumer);
  const std::vector<Endpoint> wanted(inputs.begin(), inputs.end());
  for (size_t i = 0; i < node->inputs_.size(); ++i) {
    const Endpoint& e = node->inputs_[i];
    RemoveUse(e.node, {consumer, e.port, static_cast<int>(i)});
  }
  node->inputs_ = wanted;
  node->input_slots_.resize(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    OPTFARM_CHECK(Has(wanted[i].node) && wanted[i].port >= 0);
    AddUse(wanted[i].node, {consumer, wanted[i].port, static_cast<int>(i)});
  }
}

bool Graph::HasControlEdge(NodeId source, NodeId consumer) const {
  // On whichever side there are fewer edges to look at.
  const std::vector<NodeId>& inputs = nodes_[consumer]->control_inputs_;
  const std::vector<Use>& uses = nodes_[source]->uses_;
  if (inputs.size() <= uses.size()) {
    return std::find(inputs.begin(), inputs.end(), source) != inputs.end();
  }
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    return use.is_control() && use.consumer == consumer;
  });
}

void Graph::AddControlInput(NodeId consumer, NodeId source) {
  Node* node = mutable_node(consumer);
  OPTFARM_CHECK(Has(source));
  if (source == consumer || HasControlEdge(source, consumer)) return;
  node->control_inputs_.push_back(source);
  node->control_slots_.push_back(0);
  AddUse(source, {consumer, kControlPort,
                  static_cast<int>(node->control_inputs_.size()) - 1});
}

void Graph::ClearControlInputs(NodeId consumer) {
  Node* node = mutable_node(consumer);
  for (size_t i = 0; i < node->control_inputs_.size(); ++i) {
    RemoveUse(node->control_inputs_[i],
              {consumer, kControlPort, static_cast<int>(i)});
  }
  node->control_inputs_.clear();
  node->control_slots_.clear();
}

void Graph::RedirectUses(Endpoint from, Endpoint to, NodeId except) {
  if (from == to) return;
  for (const Use& use : UsesOf(from)) {
    if (use.consumer != except) SetInput(use.consumer, use.input, to);
  }
}

void Graph::RedirectControlUses(NodeId from, NodeId to) {
  std::vector<NodeId> consumers;
  for (const Use& use : node(from).uses()) {
    if (use.is_control()) consumers.push_back(use.consumer);
  }
  for (NodeId consumer : consumers) {
    const std::vector<NodeId> old = node(consumer).control_inputs_;
    ClearControlInputs(consumer);
    for (NodeId source : old) {
      AddControlInput(consumer, source == from ? to : source);
    }
  }
}

std::vector<Use> Graph::UsesOf(Endpoint endpoint) const {
  std::vector<Use> result;
  for (const Use& use : node(endpoint.node).uses()) {
    if (use.port == endpoint.port) result.push_back(use);
  }
  return result;
}

void Graph::MoveToEnd(NodeId id) {
  Unlink(id);
  Link(id, kNoNode);
}

void Graph::Link(NodeId id, NodeId before) {
  Node& node = *nodes_[id];
  node.next_ = before;
  node.previous_ = before == kNoNode ? last_ : nodes_[before]->previous_;
  (node.previous_ == kNoNode ? first_ : nodes_[node.previous_]->next_) = id;
  (before == kNoNode ? last_ : nodes_[before]->previous_) = id;
}

void Graph::Unlink(NodeId id) {
  Node& node = *nodes_[id];
  (node.previous_ == kNoNode ? first_ : nodes_[node.previous_]->next_) =
      node.next_;
  (node.next_ == kNoNode ? last_ : nodes_[node.next_]->previous_) =
      node.previous_;
  node.previous_ = node.next_ = kNoNode;
}

size_t& Graph::SlotOf(const Use& use) {
  Node& consumer = *nodes_[use.consumer];
  std::vector<size_t>& slots =
      use.is_control() ? consumer.control_slots_ : consumer.input_slots_;
  return slots[static_cast<size_t>(use.input)];
}

void Graph::AddUse(NodeId source, const Use& use) {
  std::vector<Use>& uses = nodes_[source]->uses_;
  SlotOf(use) = uses.size();
  uses.push_back(use);
}

void Graph::RemoveUse(NodeId source, const Use& use) {
  std::vector<Use>& uses = nodes_[source]->uses_;
  const size_t slot = SlotOf(use);
  OPTFARM_CHECK(slot < uses.size() && uses[slot].consumer == use.consumer &&
                uses[slot].port == use.port && uses[slot].input == use.input);
  // The last one takes the place.
  uses[slot] = uses.back();
  SlotOf(uses[slot]) = slot;
  uses.pop_back();
}

}  // namespace optfarm::graph
