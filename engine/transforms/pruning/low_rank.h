// A matrix as the product of two that are together smaller.

#ifndef OPTFARM_ENGINE_TRANSFORMS_PRUNING_LOW_RANK_H_
#define OPTFARM_ENGINE_TRANSFORMS_PRUNING_LOW_RANK_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace optfarm::transforms {

// matrix ~ first * second, all row-major.
struct LowRank {
  int64_t rank = 0;
  // rows x rank and rank x columns; singular values are split evenly between
  // them.
  std::vector<float> first, second;
};

// The product of the least rank whose difference to the matrix is at most
// `tolerance` of it in Frobenius norm, by the singular values of the matrix.
// nullopt when that rank is above `most_rank`, or an element is not finite.
// Costs the cube of the shorter side.
// REQUIRES: as many elements as rows * columns > 0; most_rank > 0.
std::optional<LowRank> FindLowRank(absl::Span<const float> matrix,
                                   int64_t columns, double tolerance,
                                   int64_t most_rank);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_PRUNING_LOW_RANK_H_
