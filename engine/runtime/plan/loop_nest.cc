// Three passes over the needed nodes in dataflow order: frames by name, loops
// as the connected parts of each frame, and a depth-first order in which each
// loop is one item of the list around it.

#include "engine/runtime/plan/loop_nest.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::runtime {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

std::string Describe(const Node& node) {
  return absl::StrCat("node '", node.name(), "' (op ", node.op(), ")");
}

struct Frame {
  int parent = -1;
  int depth = 0;
  std::string name;
};

class LoopFinder {
 public:
  explicit LoopFinder(const GraphPart& part)
      : part_(part), graph_(part.graph) {}

  absl::StatusOr<LoopNest> Find();

 private:
  // Calls visit(source, is_loop_edge) for all edges that lead into a node.
  template <typename Visitor>
  void ForEachSource(NodeId id, Visitor visit) const;

  absl::Status AssignFrames();
  absl::Status AssignFrame(NodeId id);
  absl::StatusOr<int> ChildFrame(const Node& node, int parent);
  bool Encloses(int outer, int inner) const;
  // The frame in which a node's outputs are values.
  int ValueFrame(NodeId id) const;
  // How deep the two ends of an edge are in the same loops.
  int SharedDepth(NodeId source, NodeId consumer) const;

  absl::Status CheckLoopEdges() const;
  void SplitIntoLoops();
  void SplitLevel(int depth, std::vector<int>* loop_at);
  NodeId Root(NodeId id);

  // Items are nodes by number, then loops.
  int ItemOfLoop(int loop) const { return graph_.id_limit() + loop; }
  bool IsLoopItem(int item) const { return item >= graph_.id_limit(); }
  int LoopAround(int item) const;
  int DepthAround(int item) const;
  absl::Status CollectDependencies();
  absl::Status OwnResultError(int loop) const;
  // False when both ends are within one and the same item.
  bool AddDependency(int before, int after);
  absl::Status Order();
  absl::Status Visit(int item);
  void Emit(int item);

  const GraphPart& part_;
  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<Frame> frames_ = {Frame()};
  std::map<std::pair<int, std::string>, int> frame_by_name_;
  std::vector<int> frame_of_;
  std::vector<NodeId> union_;
  std::vector<std::vector<int>> before_;
  std::vector<bool> has_successor_;
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks_;
  LoopNest nest_;
};

template <typename Visitor>
void LoopFinder::ForEachSource(NodeId id, Visitor visit) const {
  const Node& node = graph_.node(id);
  for (const Endpoint& e : node.inputs()) {
    if (part_.is_fed(e) || !part_.needed[e.node]) continue;
    visit(e.node, graph::IsLoopEdge(graph_, node, e.node));
  }
  for (NodeId c : node.control_inputs()) {
    if (part_.needed[c]) visit(c, false);
  }
}

bool LoopFinder::Encloses(int outer, int inner) const {
  while (frames_[inner].depth > frames_[outer].depth) {
    inner = frames_[inner].parent;
  }
  return inner == outer;
}

int LoopFinder::ValueFrame(NodeId id) const {
  const int frame = frame_of_[id];
  return IsExit(graph_.node(id).op()) ? frames_[frame].parent : frame;
}

absl::StatusOr<int> LoopFinder::ChildFrame(const Node& node, int parent) {
  absl::StatusOr<std::string> name =
      graph::GetStringOr(node.def(), "frame_name", "");
  if (!name.ok()) return Annotate(name.status(), Describe(node));
  const auto [it, added] = frame_by_name_.emplace(
      std::pair(parent, *name), static_cast<int>(frames_.size()));
  if (added) {
    frames_.push_back({parent, frames_[parent].depth + 1, *name});
    if (frames_.back().depth > kMaxLoopDepth) {
      return absl::InvalidArgumentError(absl::StrCat(
          Describe(node), ": loops are nested deeper than ", kMaxLoopDepth));
    }
  }
  return it->second;
}

absl::Status LoopFinder::AssignFrame(NodeId id) {
  const Node& node = graph_.node(id);
  int frame = 0;
  bool is_mixed = false;
  ForEachSource(id, [&](NodeId source, bool is_loop_edge) {
    if (is_loop_edge) return;
    const int other = ValueFrame(source);
    if (Encloses(frame, other)) {
      frame = other;
    } else if (!Encloses(other, frame)) {
      is_mixed = true;
    }
  });
  if (is_mixed) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(node), " reads from loops that are not within one another"));
  }
  if (IsEnter(node.op())) {
    OPTFARM_ASSIGN_OR_RETURN(frame, ChildFrame(node, frame));
  } else if (frame == 0 && (IsExit(node.op()) || IsNextIteration(node.op()))) {
    return absl::InvalidArgumentError(absl::StrCat(
        Describe(node), " stands outside of loops: no Enter leads to it"));
  }
  frame_of_[id] = frame;
  return absl::OkStatus();
}

absl::Status LoopFinder::AssignFrames() {
  frame_of_.assign(graph_.id_limit(), 0);
  for (NodeId id : order_) OPTFARM_RETURN_IF_ERROR(AssignFrame(id));
  return absl::OkStatus();
}

absl::Status LoopFinder::CheckLoopEdges() const {
  for (NodeId id : order_) {
    bool fits = true;
    ForEachSource(id, [&](NodeId source, bool is_loop_edge) {
      if (is_loop_edge) fits &= frame_of_[source] == frame_of_[id];
    });
    if (!fits) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(graph_.node(id)),
                       " closes a loop that it does not stand in"));
    }
  }
  return absl::OkStatus();
}

NodeId LoopFinder::Root(NodeId id) {
  while (union_[id] != id) id = union_[id] = union_[union_[id]];
  return id;
}

int LoopFinder::SharedDepth(NodeId source, NodeId consumer) const {
  const int depth = frames_[frame_of_[consumer]].depth -
                    (IsEnter(graph_.node(consumer).op()) ? 1 : 0);
  return std::min(depth, frames_[ValueFrame(source)].depth);
}

// Finds the loops at one depth. `loop_at` has each node's loop one level up,
// and then at this level.
void LoopFinder::SplitLevel(int depth, std::vector<int>* loop_at) {
  std::iota(union_.begin(), union_.end(), 0);
  for (NodeId id : order_) {
    ForEachSource(id, [&](NodeId source, bool) {
      if (SharedDepth(source, id) >= depth) union_[Root(source)] = Root(id);
    });
  }
  std::vector<int> loop_of_root(graph_.id_limit(), kNoLoop);
  for (NodeId id : order_) {
    const Frame& frame = frames_[frame_of_[id]];
    if (frame.depth < depth) continue;
    int& loop = loop_of_root[Root(id)];
    if (loop == kNoLoop) {
      loop = static_cast<int>(nest_.loops.size());
      nest_.loops.push_back({(*loop_at)[id], depth, frame.name, {}});
    }
    (*loop_at)[id] = loop;
    if (frame.depth == depth) {
      nest_.loop_of[id] = loop;
      nest_.loops[loop].frame = frame.name;
    }
  }
}

void LoopFinder::SplitIntoLoops() {
  nest_.loop_of.assign(graph_.id_limit(), kNoLoop);
  int deepest = 0;
  for (const Frame& frame : frames_) deepest = std::max(deepest, frame.depth);
  union_.resize(graph_.id_limit());
  std::vector<int> loop_at(graph_.id_limit(), kNoLoop);
  for (int depth = 1; depth <= deepest; ++depth) SplitLevel(depth, &loop_at);
}

int LoopFinder::LoopAround(int item) const {
  return IsLoopItem(item) ? nest_.loops[item - graph_.id_limit()].parent
                          : nest_.loop_of[item];
}

int LoopFinder::DepthAround(int item) const {
  const int loop = LoopAround(item);
  return loop == kNoLoop ? 0 : nest_.loops[loop].depth;
}

// Lifts both ends to the innermost list that has both.
bool LoopFinder::AddDependency(int before, int after) {
  while (LoopAround(before) != LoopAround(after)) {
    const int a = DepthAround(before);
    const int b = DepthAround(after);
    if (a >= b) before = ItemOfLoop(LoopAround(before));
    if (b >= a) after = ItemOfLoop(LoopAround(after));
  }
  if (before == after) return false;
  before_[after].push_back(before);
  has_successor_[before] = true;
  return true;
}

absl::Status LoopFinder::OwnResultError(int loop) const {
  return absl::InvalidArgumentError(absl::StrCat(
      "the loop of frame '", loop == kNoLoop ? "" : nest_.loops[loop].frame,
      "' waits for its own result: one of its Enter nodes depends on one of "
      "its Exit nodes"));
}

absl::Status LoopFinder::CollectDependencies() {
  const size_t items = graph_.id_limit() + nest_.loops.size();
  before_.resize(items);
  has_successor_.assign(items, false);
  int looping = kNoLoop;
  for (NodeId id : order_) {
    // What enters is a matter of the whole loop, and so is what exits.
    const bool enters = IsEnter(graph_.node(id).op());
    const int after = enters ? ItemOfLoop(nest_.loop_of[id]) : id;
    ForEachSource(id, [&](NodeId source, bool is_loop_edge) {
      if (is_loop_edge) return;
      const bool exits = IsExit(graph_.node(source).op());
      const int before = exits ? ItemOfLoop(nest_.loop_of[source]) : source;
      const bool is_apart = AddDependency(before, after);
      if (!is_apart && (enters || exits)) looping = nest_.loop_of[id];
    });
  }
  return looping == kNoLoop ? absl::OkStatus() : OwnResultError(looping);
}

void LoopFinder::Emit(int item) {
  const int loop = LoopAround(item);
  auto& list = loop == kNoLoop ? nest_.top : nest_.loops[loop].body;
  if (IsLoopItem(item)) {
    list.push_back({graph::kNoNode, item - graph_.id_limit()});
  } else {
    list.push_back({item, kNoLoop});
  }
}

// Emits what an item waits for, then the item: values are used soon after they
// come about, which keeps few of them alive.
absl::Status LoopFinder::Visit(int item) {
  std::vector<std::pair<int, size_t>> stack;
  const auto open = [&](int next) {
    marks_[next] = Mark::kOpen;
    stack.emplace_back(next, 0);
  };
  if (marks_[item] == Mark::kNew) open(item);
  while (!stack.empty()) {
    auto& [at, next] = stack.back();
    if (next < before_[at].size()) {
      const int source = before_[at][next++];
      if (marks_[source] == Mark::kNew) {
        open(source);
      } else if (marks_[source] == Mark::kOpen) {
        const int loop = LoopAround(at);
        const int self = IsLoopItem(at) ? at - graph_.id_limit() : loop;
        return OwnResultError(self);
      }
      continue;
    }
    marks_[at] = Mark::kDone;
    Emit(at);
    stack.pop_back();
  }
  return absl::OkStatus();
}

absl::Status LoopFinder::Order() {
  OPTFARM_RETURN_IF_ERROR(CollectDependencies());
  marks_.assign(before_.size(), Mark::kNew);
  for (const bool only_last : {true, false}) {
    for (NodeId id : order_) {
      if (only_last && has_successor_[id]) continue;
      OPTFARM_RETURN_IF_ERROR(Visit(id));
    }
    for (size_t l = 0; l < nest_.loops.size(); ++l) {
      const int item = ItemOfLoop(static_cast<int>(l));
      if (only_last && has_successor_[item]) continue;
      OPTFARM_RETURN_IF_ERROR(Visit(item));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LoopNest> LoopFinder::Find() {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<NodeId> all,
                           graph::DataflowOrder(graph_));
  for (NodeId id : all) {
    if (part_.needed[id]) order_.push_back(id);
  }
  OPTFARM_RETURN_IF_ERROR(AssignFrames());
  OPTFARM_RETURN_IF_ERROR(CheckLoopEdges());
  SplitIntoLoops();
  OPTFARM_RETURN_IF_ERROR(Order());
  return std::move(nest_);
}

}  // namespace

bool IsEnter(absl::string_view op) { return graph::IsEnter(op); }
bool IsExit(absl::string_view op) { return graph::IsExit(op); }
bool IsNextIteration(absl::string_view op) {
  return graph::IsNextIteration(op);
}
bool IsMerge(absl::string_view op) { return graph::IsMerge(op); }
bool IsSwitch(absl::string_view op) { return graph::IsSwitch(op); }

absl::StatusOr<LoopNest> FindLoops(const GraphPart& part) {
  return LoopFinder(part).Find();
}

}  // namespace optfarm::runtime
