// What follows a linear op and can be done before its result is stored: a bias
// and a batch norm, the sum with another value, a rectifier.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_TAIL_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_TAIL_H_

#include <cstdint>
#include <vector>

#include "engine/runtime/fusion/channel_affine.h"
#include "engine/runtime/plan/plan_editor.h"
#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

// In the order in which it happens.
struct LayerTail {
  // The op itself and what follows it, in the plan's order.
  std::vector<int> members;
  // Where the result goes.
  int output = kNoSlot;
  ChannelAffine affine;
  // Slot of the value that is added; kNoSlot for none.
  int residual = kNoSlot;
  Rectifier rectifier = Rectifier::kNone;
};

// Follows output 0 of step `first` as far as it goes. `layout` is the output's;
// `with_residual`: sums with other values may be taken in.
LayerTail FollowTail(const PlanEditor& plan, int first,
                     const ChannelLayout& layout, bool with_residual);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_LAYER_TAIL_H_
