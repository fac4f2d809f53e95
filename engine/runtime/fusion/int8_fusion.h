// Finds the layers of a quantized graph: QuantizedConv2D and QuantizedMatMul
// with constant weights, and behind them what TensorFlow's quantize_nodes and
// our own recipes write. Each becomes one step (int8_layer.h), bit for bit.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_FUSION_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_FUSION_H_

#include "engine/runtime/fusion/fusions.h"

namespace optfarm::runtime {

void FuseInt8Layers(const FusionContext& context, PlanEditor* plan);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_FUSION_H_
