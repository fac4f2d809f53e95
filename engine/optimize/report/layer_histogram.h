// How the values of chosen layers are distributed, before and after, as numbers
// and as a picture.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_HISTOGRAM_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_HISTOGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/transforms/machinery/transform.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// The distributions of the named nodes' first outputs, in the order of `names`.
// ERRORS: NotFound with the nearest names for a node that the original does not
// have; InvalidArgument for one whose output is no float tensor; those of
// running the graphs.
absl::StatusOr<std::vector<v1::LayerHistogram>> MeasureHistograms(
    const graph::Graph& original, const graph::Graph& result,
    absl::Span<const transforms::RenamedNode> name_map,
    absl::Span<const std::string> names,
    absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader);

// An SVG document: the original's distribution filled, the result's as a line,
// on a logarithmic scale, one layer below the other.
std::string DrawHistograms(absl::Span<const v1::LayerHistogram> histograms);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_HISTOGRAM_H_
