// Numbers the values of a plan while it is made: one slot for each tensor that
// is read, and for what else has to be told from one step to another.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_SLOTS_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_SLOTS_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/graph/graph.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/graph_ends.h"
#include "engine/runtime/plan/loop_nest.h"

namespace optfarm::runtime {

class PlanSlots {
 public:
  // OWNERSHIP: all are the caller's and outlive it; `ends` and `nest` may be
  // filled later, before slots depend on them.
  PlanSlots(const graph::Graph& graph, const GraphEnds& ends,
            const LoopNest& nest, ExecutionPlan* plan)
      : graph_(graph), ends_(ends), nest_(nest), plan_(*plan) {}

  // A slot of its own, whose value the iterations of `loop` make.
  int New(int loop);
  int Of(graph::Endpoint e);
  // From now on `e` is the value in `slot`.
  void Share(graph::Endpoint e, int slot) { slots_[e] = slot; }
  // The slot that is alive when the node ran.
  int OfRun(graph::NodeId id);
  // Those of what the node waits for and that may not be there.
  std::vector<int> OfControls(const graph::Node& node);

  bool IsFed(graph::Endpoint e) const { return ends_.fed.contains(e); }

 private:
  // The loop in whose iterations the node's outputs are values.
  int ValueLoop(graph::NodeId id) const;

  const graph::Graph& graph_;
  const GraphEnds& ends_;
  const LoopNest& nest_;
  ExecutionPlan& plan_;
  absl::flat_hash_map<graph::Endpoint, int> slots_;
  // Of nodes without an output that is always there.
  absl::flat_hash_map<graph::NodeId, int> ran_slots_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_PLAN_SLOTS_H_
