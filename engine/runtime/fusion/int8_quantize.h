// QuantizeV2 and what follows it on quantized values, as one kernel: where
// floats become quantized values, and the parts of quantized graphs that do not
// follow a product.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_QUANTIZE_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_QUANTIZE_H_

#include <memory>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/fusion/int8_chain.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// Input: floats, whose last dimension is the chain's channels where
// `has_channels`; otherwise no channel of the chain differs from another.
// Outputs: quantized values (8 or 32 bits), min, max; floats alone where the
// chain ends in floats. `steps` are what it stands for, for inputs that it has
// no fast path for.
std::unique_ptr<Kernel> MakeInt8Quantize(Int8Chain chain, bool has_channels,
                                         const Int8Kernels& kernels,
                                         StepChain steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_QUANTIZE_H_
