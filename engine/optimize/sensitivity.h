// What each quantized layer loses when it alone is quantized, and what it
// saves: the price list of a search that puts layers back to float.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SENSITIVITY_H_
#define OPTFARM_ENGINE_OPTIMIZE_SENSITIVITY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/keep_float.h"
#include "engine/runtime/tensor.h"
#include "engine/transforms/transform.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// A graph that the recipe's chain made, with ranges frozen as in the result.
struct TransformedGraph {
  graph::Graph graph;
  std::vector<transforms::RenamedNode> name_map;
};

struct SensitivityJob {
  const graph::Graph* original = nullptr;
  // All layers quantized, and what its chain spares.
  const graph::Graph* result = nullptr;
  Spared spared;
  // The same chain with other layers spared. Called from several threads.
  std::function<absl::StatusOr<TransformedGraph>(const Spared&)> transform;
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  // One list of feeds, in the order of the inputs, for each sample.
  absl::Span<const std::vector<runtime::Tensor>> samples;
  // The result's layers against the original's (CompareLayers).
  absl::Span<const v1::TensorComparison> cumulative;
  int threads = 1;
};

// Names, as quantize_nodes knows them, of the layers that are 8-bit in a graph:
// those with weights first when there are more than `most`, in the order of
// computation.
// ERRORS: those of ordering the graph.
absl::StatusOr<std::vector<std::string>> QuantizedLayers(
    const graph::Graph& graph, size_t most);

// One entry for each of those layers, at most 64. A layer whose graph cannot be
// made or run has NaN for what could not be measured.
// ERRORS: those of running the original and the result.
absl::StatusOr<std::vector<v1::LayerSensitivity>> MeasureSensitivity(
    const SensitivityJob& job);

// UNITS: milliseconds a sample on one thread: the fastest of a few runs.
// ERRORS: those of running the graph.
absl::StatusOr<double> MillisecondsOf(
    const graph::Graph& graph, absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs,
    const std::vector<runtime::Tensor>& sample);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SENSITIVITY_H_
