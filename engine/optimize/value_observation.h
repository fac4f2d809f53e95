// What the tensors hold whose ranges a quantized graph finds in every run:
// where they are, and their values over samples.

#ifndef OPTFARM_ENGINE_OPTIMIZE_VALUE_OBSERVATION_H_
#define OPTFARM_ENGINE_OPTIMIZE_VALUE_OBSERVATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/optimize/sample_reader.h"
#include "engine/transforms/value_histogram.h"

namespace optfarm::optimize {

// A node that takes or finds the range of a tensor in every run.
struct RangeSite {
  std::string node;
  // A QuantizeV2, whose tensor is float; else a RequantizationRange or
  // RequantizationRangePerChannel, whose tensor is 32-bit codes.
  bool is_quantize = false;
  // The tensor and its range (QuantizeV2), or the one its codes stand for; that
  // may be one for each element of the last axis.
  graph::TensorName value, min, max;
  // Values above it are cut off (a Relu6 behind the codes); 0: none are.
  float clip = 0;
};

// Whether nodes of this op find the range of 32-bit codes in every run.
bool IsRangeOp(absl::string_view op);

// In the order of the graph's nodes. `with_quantizes`: QuantizeV2 nodes too.
std::vector<RangeSite> FindRangeSites(const graph::Graph& graph,
                                      bool with_quantizes);

struct ValueObservation {
  // By the sites' nodes.
  std::map<std::string, transforms::ValueHistogram> histograms;
  // Samples that were run.
  int64_t samples = 0;
};

// Runs the samples, up to `threads` at once, and counts the values of the
// sites' tensors: all of small tensors, some thousands of large ones for each
// sample, and always the smallest and the largest. The result does not depend
// on how many threads there are. Where all tensors of all threads take too much
// memory, the samples run several times, for some of the sites each. ERRORS:
// those of running the graph; InvalidArgument for too many samples that cannot
// be used.
absl::StatusOr<ValueObservation> ObserveValues(
    const graph::Graph& graph, absl::Span<const RangeSite> sites,
    absl::Span<const graph::TensorName> inputs,
    absl::Span<const int64_t> samples, int threads, SampleReader* reader);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_VALUE_OBSERVATION_H_
