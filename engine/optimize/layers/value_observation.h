// What the tensors hold whose ranges a quantized graph finds in every run: the
// ends of their values, or all values, over samples.

#ifndef OPTFARM_ENGINE_OPTIMIZE_LAYERS_VALUE_OBSERVATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_LAYERS_VALUE_OBSERVATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/layers/range_sites.h"
#include "engine/optimize/samples/sample_reader.h"
#include "engine/transforms/freezing/range_log.h"
#include "engine/transforms/quantizing/value_histogram.h"

namespace optfarm::optimize {

// What runs over the samples. OWNERSHIP: the caller's.
struct SampleRun {
  absl::Span<const graph::TensorName> inputs;
  absl::Span<const int64_t> samples;
  // Samples run at once; no result depends on how many.
  int threads = 1;
  SampleReader* reader = nullptr;
};

// The smallest and the largest value of each site's tensor, NaN for both where
// one is NaN or infinite: for each sample that was run, in the samples' order,
// one range a site.
// REQUIRES: float sites. ERRORS: those of ObserveValues.
absl::StatusOr<std::vector<std::vector<transforms::ObservedRange>>>
ObserveExtremes(const graph::Graph& graph, absl::Span<const RangeSite> sites,
                const SampleRun& run);

struct ValueObservation {
  // By the sites' nodes.
  std::map<std::string, transforms::ValueHistogram> histograms;
  // Samples that were run.
  int64_t samples = 0;
};

// Runs the samples and counts the values of the sites' tensors: all of small
// tensors, some thousands of large ones for each sample, and always the
// smallest and the largest. Where all tensors of all threads take too much
// memory, the samples run several times, for some of the sites each.
// ERRORS: those of running the graph; InvalidArgument for too many samples that
// cannot be used.
absl::StatusOr<ValueObservation> ObserveValues(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    const SampleRun& run);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_LAYERS_VALUE_OBSERVATION_H_
