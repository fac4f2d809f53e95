// QuantizedAdd of two tensors of one shape and what follows it, as one kernel:
// the sums of residual nets.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SUM_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SUM_H_

#include <memory>
#include <optional>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/fusion/int8_chain.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// What follows a sum: a chain of so many channels, none of which differs from
// another.
inline constexpr int64_t kInt8SumChannels = 32;

// Of both operands.
struct Int8SumRanges {
  Range a;
  Range b;
};

// Inputs: those of QuantizedAdd. Outputs: quantized values (8 or 32 bits), min,
// max; floats alone where the chain ends in floats. `expected`: the ranges,
// where they are known beforehand. `steps` are what it stands for, for inputs
// that it has no fast path for.
std::unique_ptr<Kernel> MakeInt8Sum(
    Int8Chain chain, const std::optional<Int8SumRanges>& expected,
    const Int8Kernels& kernels, StepChain steps);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT8_SUM_H_
