// Which tensors of an optimized graph stand for which of the original, so that
// the two can be compared layer by layer.

#ifndef OPTFARM_ENGINE_OPTIMIZE_LAYERS_LAYERS_H_
#define OPTFARM_ENGINE_OPTIMIZE_LAYERS_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/runtime/core/tensor.h"
#include "engine/transforms/machinery/transform.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// Output 0 of a node of the original that the result still computes: as a
// tensor of the same name, or as 8-bit values with their range.
struct Layer {
  std::string name;
  // Op in the original.
  std::string op;
  // One tensor, or quantized values, minimum and maximum.
  std::vector<graph::TensorName> result;
};

// In execution order of the original; Const nodes and nodes that depend on
// constants alone are left out. At most `most`, spread evenly. `name_map` says
// which nodes of the result have other names than they were made with.
// ERRORS: those of ordering the graph.
absl::StatusOr<std::vector<Layer>> FindLayers(
    const graph::Graph& original, const graph::Graph& result,
    absl::Span<const transforms::RenamedNode> name_map,
    absl::Span<const graph::TensorName> inputs, size_t most);

// By node: whether it may have no value in a run, or one for each iteration,
// because it is within a branch of a conditional or the body of a loop.
// ERRORS: those of ordering the graph.
absl::StatusOr<std::vector<bool>> MayBeCutOff(const graph::Graph& graph);

// Those layers that have a value in every run: not within a branch of a
// conditional or the body of a loop.
// ERRORS: those of ordering the graph.
absl::StatusOr<std::vector<Layer>> LayersOfEveryRun(
    const graph::Graph& original, absl::Span<const Layer> layers);

// The float tensor that 8-bit values of mode MIN_FIRST stand for.
// ERRORS: InvalidArgument for another dtype.
absl::StatusOr<runtime::Tensor> Decode(const runtime::Tensor& values, float min,
                                       float max);

// The layer's value among what a run fetched of the result, from `at` on.
// ERRORS: InvalidArgument when quantized values come without a range.
absl::StatusOr<runtime::Tensor> ValueOf(
    const Layer& layer, absl::Span<const runtime::Tensor> fetched, size_t at);

// Runs both graphs and compares the layers, in the order of `layers`. A layer
// that cannot be compared (other shapes, no numbers) has no samples. Where the
// tensors of all layers take too much memory, the samples run several times,
// for some of the layers each.
// ERRORS: those of running the graphs.
absl::StatusOr<std::vector<v1::TensorComparison>> CompareLayers(
    const graph::Graph& original, const graph::Graph& result,
    absl::Span<const Layer> layers, absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_LAYERS_LAYERS_H_
