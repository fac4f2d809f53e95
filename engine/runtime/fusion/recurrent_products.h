// A recurrent layer whose steps stand one after the other in the graph: each
// multiplies an input and a state side by side by the same weights. What the
// inputs give needs no state, so that it is found for all steps at once, and a
// step reads the states' rows of the weights alone.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_RECURRENT_PRODUCTS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_RECURRENT_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// What all steps share.
struct RecurrentLayer {
  // All panels are as wide as the tiles.
  FloatPanels panels;
  PackedWeights packed;
  // Rows of the weights that are the inputs'; the others are the states'.
  int64_t input_depth = 0;
  // As PadColumns makes them; empty for none.
  std::vector<float> scale;
  std::vector<float> bias;
  // The tensor of all inputs has rank 3, the steps along this axis: 0 or 1.
  int axis = 0;
  int steps = 0;
  // Numbers of the steps whose input is read as it is.
  std::vector<int> kept;
  // Takes it apart.
  std::unique_ptr<Kernel> unpack;
};

// input(0): all inputs. Gives the products of the inputs, by step, or what the
// kernels of the steps take the inputs from when the shapes are others; then
// the inputs that are kept.
std::unique_ptr<Kernel> MakeInputProducts(
    std::shared_ptr<const RecurrentLayer> layer);

// Step number `step`. input(0): what MakeInputProducts' kernel gave; input(1):
// the state. `chain` computes the same from the step's input and the state.
std::unique_ptr<Kernel> MakeRecurrentProduct(
    std::shared_ptr<const RecurrentLayer> layer, int step, Rectifier rectifier,
    StepChain chain);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_RECURRENT_PRODUCTS_H_
