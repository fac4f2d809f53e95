// Attention in one step: softmax(scores(queries x keys)) x values, head by
// head. The scores of some rows are computed and used while they are in the
// cache; heads are read and written where they stand, without a transpose.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_ATTENTION_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_ATTENTION_H_

#include <array>
#include <memory>
#include <vector>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/plan/step_chain.h"
#include "engine/runtime/ukernels/float/element_functions.h"
#include "engine/runtime/ukernels/float/float_tile.h"
#include "engine/runtime/ukernels/float/softmax.h"

namespace optfarm::runtime {

// What happens to scores before the softmax.
struct ScoreStep {
  enum class Kind {
    kScale,
    // A tensor is added.
    kAdd,
    // Where a tensor is not `keeps`, `value` takes the score's place.
    kSelect,
  };
  Kind kind = Kind::kScale;
  float value = 1.0f;
  bool keeps = true;
  // Of the kernel.
  int input = 0;
};

// The micro-kernels of one instruction set.
struct AttentionFunctions {
  const FloatTiles* tiles = nullptr;
  SoftmaxFunction softmax = nullptr;
  const ElementFunctions* elements = nullptr;
};

// Inputs 0 to 2 are queries, keys and values: matrices of positions x size in
// the last two dimensions, after dimension i of the tensor's order[i] became i.
struct AttentionLayer {
  AttentionFunctions run;
  // Empty where a tensor is read as it is.
  std::array<std::vector<int>, 3> orders;
  // Whether keys are positions x size, and not the other way around.
  bool transposes_keys = false;
  // The product of all factors before the first other step is in the keys.
  float scale = 1.0f;
  std::vector<ScoreStep> steps;
  // Of the result; empty keeps it.
  std::vector<int> output_order;
  // The steps that it stands for.
  StepChain chain;
};

// A kernel of queries, keys, values and what the steps name, each of the same
// heads; it gives the mixed values. Inputs that it has no fast code for, such
// as heads that are repeated, are left to the chain.
// REQUIRES: all functions are there; an order has each dimension once.
std::unique_ptr<Kernel> MakeAttentionKernel(AttentionLayer layer);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_ATTENTION_H_
