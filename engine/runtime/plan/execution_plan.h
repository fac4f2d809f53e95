// What a session runs: a flat list of steps over numbered slots, one slot for
// each value. A run walks the list once; a loop is a stretch of it between
// kLoopBegin and kLoopEnd that is walked once for each iteration. An empty slot
// is a dead value: a step that reads one makes its own values dead and does not
// run, which is how a Switch cuts off a branch.

#ifndef OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTION_PLAN_H_
#define OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTION_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/packed_weights.h"
#include "engine/runtime/core/run_memory.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/plan/loop_nest.h"

namespace optfarm::runtime {

inline constexpr int kNoSlot = -1;

enum class StepKind : uint8_t {
  kKernel,
  // Hands its one input on: Identity, NextIteration, LoopCond.
  kForward,
  // Hands on what a reference's variable holds now.
  kReadVariable,
  // Hands its input on to one of two outputs.
  kSwitch,
  // Hands on the first living input.
  kMerge,
  // As kForward, but a dead input leaves the output as it is: what an earlier
  // iteration made stays.
  kExit,
  kLoopBegin,
  kLoopEnd,
};

struct Step {
  StepKind kind = StepKind::kKernel;
  // The same inputs give the same outputs, and nothing else happens.
  bool is_pure = true;
  // Not a node of the graph but a part of one: traces leave it out.
  bool is_helper = false;
  // Runs whichever of its inputs are dead, and says which outputs are then.
  bool takes_dead_inputs = false;
  // ControlTrigger runs whether or not what it waits for did.
  bool ignores_dead_controls = false;
  // Of kLoopBegin and kLoopEnd, the loop in ExecutionPlan::loops.
  int loop = kNoLoop;
  std::string name;
  std::string op;
  // The nodes that a fused step stands for, in their order; empty for a step
  // that is one node.
  std::vector<std::string> fused_names;
  // The node itself, while the plan is made; nullptr for what is not one node
  // of the graph. OWNERSHIP: the graph's.
  const tensorflow::NodeDef* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  // UNITS: bytes of weights that the kernel holds in a form of its own.
  int64_t constant_bytes = 0;
  // Slots read, in the order of the arguments.
  std::vector<int> inputs;
  // Slots written, one for each output that the op has; kNoSlot for an output
  // that the caller feeds.
  std::vector<int> outputs;
  // Slot that is alive when the step ran: for a step without outputs, and for
  // a Switch that others wait for.
  int ran = kNoSlot;
  // Slots of what it waits for: dead when one of them is.
  std::vector<int> controls;
  // By input: no later step reads the slot, so the buffer may be taken over.
  std::vector<bool> last_use;
  // Whether its tensors have places in the run's memory plan. Those within a
  // loop come again and again and have none.
  bool has_places = false;
  // Slots that nobody needs after this step.
  std::vector<int> release;
};

// A loop's values at its borders.
struct LoopPlan {
  int parent = kNoLoop;
  std::string frame;
  // Numbers of its kLoopBegin and kLoopEnd steps.
  int begin = 0;
  int end = 0;
  // A value that enters. A constant one stays for all iterations; its `to` is
  // `from` unless it waits for something.
  struct Entry {
    int from = kNoSlot;
    int to = kNoSlot;
    bool is_constant = false;
    std::vector<int> controls;
  };
  std::vector<Entry> entries;
  // A value that one iteration leaves (`next`) for the one after (`current`).
  struct Carry {
    int next = kNoSlot;
    int current = kNoSlot;
  };
  std::vector<Carry> carries;
  // Slots outside of the loop that steps within it write.
  std::vector<int> exits;
};

// A constant and who packs it. The value itself is held so that nothing else
// can come to lie where it is found by.
struct PlannedWeights {
  Tensor value;
  std::shared_ptr<SharedWeights> weights;
};

struct ExecutionPlan {
  std::vector<Step> steps;
  std::vector<LoopPlan> loops;
  // By slot: what is there before the first step (constants, folded results).
  std::vector<Tensor> initial;
  // By where their elements lie, while the plan is made: constants that others
  // may have packed.
  absl::flat_hash_map<const void*, std::shared_ptr<PlannedWeights>> weights;
  // By slot: the loop whose iterations make the value.
  std::vector<int> slot_loop;
  // By slot: the tensor of the graph that it holds; the node is graph::kNoNode
  // for values that are between tensors.
  std::vector<graph::Endpoint> slot_tensors;
  // By slot: present before, or fetched; steps do not release it.
  std::vector<bool> keep;
  // Slots to empty after a run.
  std::vector<int> transient;

  std::vector<int> feed_slots;
  // DT_INVALID where the graph does not say.
  std::vector<DataType> feed_types;
  std::vector<std::string> feed_names;
  // kNoSlot for an operation that is only run ("^name").
  std::vector<int> fetch_slots;
  std::vector<std::string> fetch_names;

  // 0, 1, 2, ... for the second output of Merge; at least one.
  std::vector<Tensor> merge_indices;
  // What stands in a slot that only says that a step ran.
  const Tensor& token() const { return merge_indices.front(); }
  // Whether results have places in one piece, and what is known of it before
  // the first run.
  bool plans_memory = false;
  ExpectedRun expected;
  // UNITS: bytes held for the whole life: weights and folded constants.
  int64_t constant_bytes = 0;
};

inline std::string DescribeNode(absl::string_view name, absl::string_view op) {
  return absl::StrCat("node '", name, "' (op ", op, ")");
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_PLAN_EXECUTION_PLAN_H_
