// QuantizeV2 and what follows it on codes, as one kernel: where floats become
// codes, and the parts of quantized graphs that do not follow a product.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CODES_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CODES_H_

#include <memory>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/fusion/int8_chain.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// Input: floats, whose last dimension is the chain's columns where
// `has_columns`; otherwise no column of the chain differs from another.
// Outputs: codes (8 or 32 bits), min, max; floats alone where the chain ends in
// floats. `steps` are what it stands for, for inputs that it has no code for.
std::unique_ptr<Kernel> MakeInt8Codes(Int8Chain chain, bool has_columns,
                                      const Int8Kernels& kernels,
                                      StepChain steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_CODES_H_
