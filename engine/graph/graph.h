// A GraphDef in memory. Start here to understand the engine.
//
// The graph keeps edges as node numbers, in both directions, so that a rewrite
// costs what it touches. It is changed only through its own methods, which keep
// these invariants:
//   1. node names are unique and not empty;
//   2. every input is an existing node; data inputs and control inputs are kept
//      apart, data inputs in the order of their arguments;
//   3. uses(n) lists exactly the edges that leave n;
//   4. a number names the same node for the graph's life and is never reused.
// Ports, dtypes and cycles are not checked here: verify.h does that.
//
// Tensors stay inside the nodes' attributes and move with them; they are never
// copied because the graph around them changed.

#ifndef OPTFARM_ENGINE_GRAPH_GRAPH_H_
#define OPTFARM_ENGINE_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/tensor_name.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::graph {

// Number of a node within its graph.
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// One output of one node: where a data edge begins.
struct Endpoint {
  NodeId node = kNoNode;
  int port = 0;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Endpoint& e) {
    return H::combine(std::move(h), e.node, e.port);
  }
};

// One edge seen from the node where it begins.
struct Use {
  NodeId consumer = kNoNode;
  // Output that is read, or kControlPort.
  int port = 0;
  // Index into the consumer's data inputs, or into its control inputs.
  int input = 0;

  bool is_control() const { return port == kControlPort; }
};

// One operation. OWNERSHIP: belongs to its Graph; references stay valid until
// the node is removed.
class Node {
 public:
  const std::string& name() const { return def_.name(); }
  const std::string& op() const { return def_.op(); }
  const std::string& device() const { return def_.device(); }
  absl::Span<const Endpoint> inputs() const { return inputs_; }
  absl::Span<const NodeId> control_inputs() const { return control_inputs_; }
  // Edges that leave this node, in no particular order.
  absl::Span<const Use> uses() const { return uses_; }

  // Attributes by name; nullptr when absent. attr.h reads them by type.
  const tensorflow::AttrValue* FindAttr(absl::string_view name) const;

  // Op, name, device and attributes. Its `input` field is empty: edges are
  // inputs() and control_inputs(). Changing attributes, op or device through
  // mutable_def() is allowed; name and input are the graph's.
  const tensorflow::NodeDef& def() const { return def_; }
  tensorflow::NodeDef* mutable_def() { return &def_; }

 private:
  friend class Graph;
  tensorflow::NodeDef def_;
  std::vector<Endpoint> inputs_;
  std::vector<NodeId> control_inputs_;
  std::vector<Use> uses_;
  // Where each edge stands among the uses of the node it comes from, so that
  // cutting it costs the same however many others there are.
  std::vector<size_t> input_slots_;
  std::vector<size_t> control_slots_;
  // Neighbours in file order.
  NodeId previous_ = kNoNode;
  NodeId next_ = kNoNode;
  bool removed_ = false;
};

// THREADS: const methods may run concurrently; changes need exclusive access.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  // An explicit copy, tensors included: cost grows with the model's bytes.
  Graph Clone() const;

  // Takes a GraphDef's nodes, versions and function library.
  // ERRORS: InvalidArgument naming node and input for an empty or duplicate
  // node name, an input that is not in the graph (with the nearest names), or
  // a malformed input string.
  static absl::StatusOr<Graph> FromDef(tensorflow::GraphDef def);
  tensorflow::GraphDef ToDef() const;
  tensorflow::GraphDef TakeDef() &&;

  // --- Reading ---------------------------------------------------------------

  int node_count() const { return live_count_; }
  // All node numbers ever given are below this.
  NodeId id_limit() const { return static_cast<NodeId>(nodes_.size()); }
  bool Has(NodeId id) const;
  // REQUIRES: Has(id).
  const Node& node(NodeId id) const;
  Node* mutable_node(NodeId id);
  // kNoNode when there is no such node.
  NodeId Find(absl::string_view name) const;
  // ERRORS: NotFound with the nearest names.
  absl::StatusOr<NodeId> Get(absl::string_view name) const;
  // Finds the node of a data tensor's name. Ports are not checked.
  absl::StatusOr<Endpoint> Resolve(const TensorName& name) const;
  std::string NameOf(Endpoint endpoint) const;

  // Live nodes in file order. The graph may be changed between steps of one's
  // own loop only when it runs over a copy: `for (NodeId id : graph.Ids())`.
  std::vector<NodeId> Ids() const;

  const tensorflow::VersionDef& versions() const { return versions_; }
  tensorflow::VersionDef* mutable_versions() { return &versions_; }
  const tensorflow::FunctionDefLibrary& library() const { return library_; }
  tensorflow::FunctionDefLibrary* mutable_library() { return &library_; }

  // --- Changing --------------------------------------------------------------

  // Adds a node with op, name, device and attributes of `def` (its `input` is
  // ignored) and the given edges; before `before` in file order, at the end
  // for kNoNode. A name that is taken gets "_1", "_2", ... (the name in use is
  // node(id).name()).
  // REQUIRES: def.name() not empty; all edges' nodes exist.
  NodeId Add(tensorflow::NodeDef def, absl::Span<const Endpoint> inputs,
             absl::Span<const NodeId> control_inputs = {},
             NodeId before = kNoNode);

  // Removes a node. REQUIRES: nothing uses it.
  void Remove(NodeId id);
  // Removes all of `ids`, whose users are all among `ids`, in any order.
  void RemoveAll(absl::Span<const NodeId> ids);

  // Gives a node another name; a name that is taken gets "_1", ...
  // (removing the old owner first keeps the name).
  void Rename(NodeId id, absl::string_view name);
  // The free name nearest to `name`: itself, or with "_1", "_2", ...
  std::string FreeName(absl::string_view name) const;

  // Lets data input `index` of `consumer` read `source`.
  void SetInput(NodeId consumer, int index, Endpoint source);
  // Replaces all data inputs.
  void SetInputs(NodeId consumer, absl::Span<const Endpoint> inputs);
  // Adds a control edge; no effect when it is there or source == consumer.
  void AddControlInput(NodeId consumer, NodeId source);
  void ClearControlInputs(NodeId consumer);

  // Lets every data consumer of `from` read `to`, except edges into `except`.
  void RedirectUses(Endpoint from, Endpoint to, NodeId except = kNoNode);
  // Lets every control successor of `from` wait for `to` instead.
  void RedirectControlUses(NodeId from, NodeId to);
  // Data uses of one output.
  std::vector<Use> UsesOf(Endpoint endpoint) const;

  // Moves a node to the end of file order.
  void MoveToEnd(NodeId id);

 private:
  void Link(NodeId id, NodeId before);
  void Unlink(NodeId id);
  bool HasControlEdge(NodeId source, NodeId consumer) const;
  // The place where the edge's slot is kept.
  size_t& SlotOf(const Use& use);
  void AddUse(NodeId source, const Use& use);
  void RemoveUse(NodeId source, const Use& use);

  // Boxed so that references to nodes survive growth.
  std::vector<std::unique_ptr<Node>> nodes_;
  absl::flat_hash_map<std::string, NodeId> by_name_;
  NodeId first_ = kNoNode;
  NodeId last_ = kNoNode;
  int live_count_ = 0;
  tensorflow::VersionDef versions_;
  tensorflow::FunctionDefLibrary library_;
};

// Nodes in an order in which each stands after its inputs; loops are cut at the
// inputs of Merge that come from NextIteration. The order is the one
// TensorFlow's sort_by_execution_order gives: a stack of ready nodes, filled in
// file order.
// ERRORS: InvalidArgument "K nodes in a cycle" naming some of them.
absl::StatusOr<std::vector<NodeId>> ExecutionOrder(const Graph& graph);

// Marks what the given nodes need, following data and control inputs but not
// beyond nodes in `stop_at`. Indexed by NodeId; `roots` are marked themselves.
std::vector<bool> ReachableFrom(const Graph& graph,
                                absl::Span<const NodeId> roots,
                                absl::Span<const NodeId> stop_at = {});

}  // namespace optfarm::graph

#endif  // OPTFARM_ENGINE_GRAPH_GRAPH_H_
