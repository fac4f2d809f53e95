// A few numbers that stand for many, chosen so that the squared error is small:
// k-means in one dimension. It makes no random choice.

#ifndef OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_CLUSTERS_H_
#define OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_CLUSTERS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace optfarm::transforms {

// At most `count` different numbers, ascending. Replacing each value by the
// nearest has, but for rounding, no larger squared error than replacing it by
// the middle of one of `count` equal parts of the range.
// REQUIRES: finite values, at least one; count > 0.
std::vector<float> FindClusters(absl::Span<const float> values, int64_t count);

// The nearest of `clusters`, which FindClusters made.
float NearestCluster(absl::Span<const float> clusters, float value);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_QUANTIZING_VALUE_CLUSTERS_H_
