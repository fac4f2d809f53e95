#include "engine/runtime/plan/plan_slots.h"

#include "engine/graph/ops/op_table.h"

namespace optfarm::runtime {

using graph::Endpoint;
using graph::Node;
using graph::NodeId;

int PlanSlots::ValueLoop(NodeId id) const {
  const int loop = nest_.loop_of[id];
  return loop != kNoLoop && IsExit(graph_.node(id).op())
             ? nest_.loops[loop].parent
             : loop;
}

int PlanSlots::New(int loop) {
  plan_.initial.emplace_back();
  plan_.slot_loop.push_back(loop);
  plan_.slot_tensors.push_back({graph::kNoNode, 0});
  return static_cast<int>(plan_.initial.size()) - 1;
}

int PlanSlots::Of(Endpoint e) {
  const auto it = slots_.find(e);
  if (it != slots_.end()) return it->second;
  const int slot = New(IsFed(e) ? kNoLoop : ValueLoop(e.node));
  plan_.slot_tensors[slot] = e;
  slots_.emplace(e, slot);
  return slot;
}

int PlanSlots::OfRun(NodeId id) {
  const Node& node = graph_.node(id);
  const auto count = OutputCountOf(node);
  // A Switch runs though its output 0 may be dead.
  if (count.ok() && *count > 0 && !IsSwitch(node.op())) return Of({id, 0});
  const auto [it, added] = ran_slots_.emplace(id, kNoSlot);
  if (added) it->second = New(ValueLoop(id));
  return it->second;
}

std::vector<int> PlanSlots::OfControls(const Node& node) {
  std::vector<int> slots;
  for (NodeId c : node.control_inputs()) {
    const Node& source = graph_.node(c);
    const bool is_present =
        graph::IsConst(source.op()) && source.control_inputs().empty();
    if (is_present || IsFed({c, 0})) continue;
    slots.push_back(OfRun(c));
  }
  return slots;
}

}  // namespace optfarm::runtime
