// Replacing dynamic ranges of a quantized graph by observed ones.

#ifndef OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_RANGES_H_
#define OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_RANGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/transforms/freezing/range_log.h"

namespace optfarm::transforms {

// How one range comes from many observations.
struct FreezeOptions {
  // UNITS: percent of the observations, lowest minima and highest maxima, that
  // are left out as outliers; 0 <= p < 100.
  float min_percentile = 5;
  float max_percentile = 5;
};

struct FreezeResult {
  int frozen = 0;
  // RequantizationRange nodes without observations: they stay dynamic.
  std::vector<std::string> left_dynamic;
};

// ERRORS: InvalidArgument for a percentile that is out of range.
absl::Status CheckPercentiles(const FreezeOptions& options);

// Of n observations, sorted ascending: the minimum at index
// max(0, round(n * min_percentile / 100)) and the maximum at index
// min(n - 1, round(n * (1 - max_percentile / 100))), halves away from zero.
// REQUIRES: ranges not empty, options valid.
ObservedRange RangeOfPercentiles(absl::Span<const ObservedRange> ranges,
                                 const FreezeOptions& options);

// Replaces each RequantizationRange node of the log by Consts
// `<node>/frozen_min` and `<node>/frozen_max`.
// ERRORS, before anything is changed: InvalidArgument for an empty log, a node
// that is not in the graph or is another op, a percentile out of range, an
// observation that is not finite.
absl::StatusOr<FreezeResult> FreezeRanges(graph::Graph* graph,
                                          const RangeLog& log,
                                          const FreezeOptions& options = {});

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_FREEZING_FREEZE_RANGES_H_
