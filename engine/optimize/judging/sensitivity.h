// What each quantized layer loses when it alone is quantized, and what it
// saves: the price list of a search that puts layers back to float.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_SENSITIVITY_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_SENSITIVITY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

struct SensitivityJob {
  const graph::Graph* original = nullptr;
  // What the recipe's chain quantizes: the same in float.
  const graph::Graph* floats = nullptr;
  // All layers quantized.
  const graph::Graph* result = nullptr;
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  // One list of feeds, in the order of the inputs, for each sample.
  absl::Span<const std::vector<runtime::Tensor>> samples;
  // The result's layers against the original's (CompareLayers).
  absl::Span<const v1::TensorComparison> cumulative;
  int threads = 1;
};

// One entry for each 8-bit layer of the result, those with weights first when
// there are more than 64, which is the most, in the order of computation. A
// layer is measured as the result has it, with its own quantized values, ranges
// and corrected biases, in a graph that is float but for it; layers whose
// channels are scaled together with those that take the factors back. What
// could not be measured is NaN. ERRORS: those of running the original and the
// result.
absl::StatusOr<std::vector<v1::LayerSensitivity>> MeasureSensitivity(
    const SensitivityJob& job);

// UNITS: milliseconds a sample on one thread: the fastest of a few runs.
// ERRORS: those of running the graph.
absl::StatusOr<double> MillisecondsOf(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs,
    const std::vector<runtime::Tensor>& sample);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_SENSITIVITY_H_
