// Takes out of a quantized graph the part of its error that is the same for
// every input. Rounding weights shifts the mean of each output channel; the
// shift is measured on samples and subtracted from the bias behind the layer
// (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
// Correction", 2019, section 4.2, the variant from data; formulas 14 and 15 of
// docs/quantization.md).

#ifndef OPTFARM_ENGINE_OPTIMIZE_ROUNDING_BIAS_CORRECTION_H_
#define OPTFARM_ENGINE_OPTIMIZE_ROUNDING_BIAS_CORRECTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/folding/shift_constants.h"

namespace optfarm::optimize {

// Corrects, in the order of computation, every float Add, AddV2 and BiasAdd of
// `optimized` whose one operand is a float vector that nobody else reads and
// whose name is in `original` too: afterwards the mean of each of its channels
// over the samples is the original's. Returns what was added to which constant,
// so that shift_constants can do the same without the samples.
// `samples` holds one list of feeds, in the order of `inputs`, for each sample.
// No effect without samples.
// ERRORS: those of running either graph.
absl::StatusOr<transforms::ConstantShifts> CorrectBiases(
    const graph::Graph& original, absl::Span<const graph::TensorName> inputs,
    absl::Span<const std::vector<runtime::Tensor>> samples, int threads,
    graph::Graph* optimized);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_ROUNDING_BIAS_CORRECTION_H_
