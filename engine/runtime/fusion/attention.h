// Attention in one step: softmax(scores(queries x keys)) x values, head by
// head. A block of rows of scores is computed and used while it is in the
// cache; heads are read and written in place, without a transpose.

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
  // Index of the kernel's input.
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

// A kernel whose inputs are queries, keys, values and the tensors of the score
// steps, all with the same heads; its output is that of the attention.
// Unsupported inputs, such as keys shared by several heads, fall back to the
// chain.
// REQUIRES: all functions are there; an order has each dimension once.
std::unique_ptr<Kernel> MakeAttentionKernel(AttentionLayer layer);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_ATTENTION_H_
