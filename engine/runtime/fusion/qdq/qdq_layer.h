// A convolution, depthwise convolution or matrix product between
// DequantizeLinear and QuantizeLinear, with bias and activation, in integers:
// exact sums, and one rounding from the sum to the result.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_LAYER_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_LAYER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/fusion/qdq/qdq_kernel.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/operators/int8_weights.h"
#include "engine/runtime/reference/nn/window.h"

namespace optfarm::runtime {

struct QdqLayerPlan {
  QdqTensor in;
  QdqTensor out;
  // Of a convolution; nothing for a matrix product.
  std::optional<WindowAttrs> window;
  // Whether a matrix product takes a tensor of any rank as rows of its depth.
  bool flattens = false;
  // The filter: height, width and channels; 1, 1 and rows for a matrix.
  int64_t size_y = 1;
  int64_t size_x = 1;
  int64_t channels = 0;
  Int8Weights weights;
  bool is_depthwise = false;
  // As Int8Gemm has it.
  bool is_by_row = false;
  Int8Kernels kernels;
  // By column: what is added to the sums, and what these are multiplied by to
  // be in steps of the result.
  std::vector<int32_t> bias;
  std::vector<float> scales;
  // The least and the greatest unsigned value of the result.
  int32_t least = 0;
  int32_t most = 255;
};

// REQUIRES: no sum leaves 32 bits.
std::unique_ptr<QdqKernel> MakeQdqLayer(QdqLayerPlan plan, QdqSteps steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_LAYER_H_
