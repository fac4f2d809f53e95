// What follows a linear op and can be done before its result is stored: a bias,
// the sum with another value, a rectifier.

#ifndef OPTFARM_ENGINE_RUNTIME_FAST_LAYER_TAIL_H_
#define OPTFARM_ENGINE_RUNTIME_FAST_LAYER_TAIL_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/fast/float_tile.h"
#include "engine/runtime/fast/plan_editor.h"

namespace optfarm::runtime {

struct LayerTail {
  // The op itself and what follows it, in the plan's order.
  std::vector<int> members;
  // Where the result goes.
  int output = kNoSlot;
  // One value for each channel; nullptr for none. OWNERSHIP: the plan's.
  const Tensor* bias = nullptr;
  // Slot of the value that is added; kNoSlot for none.
  int residual = kNoSlot;
  Rectifier rectifier = Rectifier::kNone;
};

// Follows the one output of step `first` as far as it goes. `channels` are the
// last dimension of the output; `with_residual`: sums may be taken in.
LayerTail FollowTail(const PlanEditor& plan, int first, int64_t channels,
                     bool with_residual);

// Whether the step is a node of this op on floats.
bool IsFloatNode(const Step* step, const char* op);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FAST_LAYER_TAIL_H_
