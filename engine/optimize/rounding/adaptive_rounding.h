// Rounds the weights of 8-bit layers so that the layers' results change least
// on samples, instead of each weight to its nearest quantized value: the error
// of a weight is made up for by those that are multiplied with similar inputs.
// (Nagel et al., "Up or Down? Adaptive Rounding for Post-Training
// Quantization", 2020, pose the problem; the solution is Frantar et al.'s of
// 2022. Formulas 29 to 31 of docs/quantization.md.)

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ADAPTIVE_ROUNDING_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ADAPTIVE_ROUNDING_H_

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/optimize/layers/value_observation.h"
#include "engine/transforms/folding/shift_constants.h"

namespace optfarm::optimize {

// What is to be added to the quantized values of `quantized`, which
// quantize_layers made of `floats` and whose ranges are frozen, and to its
// biases, which take what the new quantized values change of the layers' means.
// A channel's quantized values change where that makes its error less on every
// second sample, when they are chosen on the others. Layers stay as they are
// whose weights others use too, whose ranges are found at each run, or in which
// 32 bits might not hold other quantized values' sums. Bounded in memory;
// THREADS: run.threads; the result does not depend on them. ERRORS: those of
// running the graph.
absl::StatusOr<transforms::ConstantShifts> FindRounding(
    const graph::Graph& floats, const graph::Graph& quantized,
    const SampleRun& run);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_ADAPTIVE_ROUNDING_H_
