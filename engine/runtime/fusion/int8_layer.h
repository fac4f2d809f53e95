// A convolution, depthwise convolution or matrix product of 8-bit values with
// constant weights and all that follows it up to the next quantized values or
// floats, as one kernel.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_LAYER_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/fusion/int8_chain.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/plan/step_chain.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

struct Int8LayerPlan {
  // Of a convolution; nothing for a matrix product.
  std::optional<WindowAttrs> window;
  // The filter: height, width and channels; 1, 1 and rows for a matrix.
  int64_t size_y = 1;
  int64_t size_x = 1;
  int64_t channels = 0;
  Int8Weights weights;
  bool is_depthwise = false;
  // As Int8Gemm has it.
  bool is_by_row = false;
  // That of the unsigned values.
  int32_t weights_zero = 0;
  // Of a product so deep that sums of any quantized values may leave 32 bits,
  // what LargestWeight finds; nothing for others.
  std::optional<int64_t> largest_weight;
  // Of TensorFlow's first ops: the weights' range.
  Range weights_range;
  // Of whole layers: the weights' scales, one or one for each channel; empty
  // for the above.
  std::vector<float> weight_scales;
  Int8Chain chain{0};
  Int8Kernels kernels;
  // What input 0's quantized values stand for, where it is known beforehand.
  std::optional<Range> input_range;
};

// What the products of a layer stand for when its input has this range.
Int8AccumulatorScale AccumulatorScaleOf(const Int8LayerPlan& plan, Range input);

// Inputs: quantized values, min, max. Outputs: quantized values (8 or 32 bits),
// min, max; floats alone where the chain ends in floats. `steps` are what it
// stands for, for inputs that it has no fast path for.
std::unique_ptr<Kernel> MakeInt8Layer(Int8LayerPlan plan, StepChain steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_LAYER_H_
