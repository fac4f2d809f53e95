// Orders of axes, as Transpose has them: axis i of the result is axis order[i]
// of the input.

#ifndef OPTFARM_ENGINE_TRANSFORMS_LAYOUT_PERMUTATION_H_
#define OPTFARM_ENGINE_TRANSFORMS_LAYOUT_PERMUTATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::transforms {

using Permutation = std::vector<int>;

Permutation IdentityOf(int rank);
bool IsIdentity(const Permutation& order);
Permutation Inverse(const Permutation& order);

// Of a Transpose by `first` and then one by `second`.
// REQUIRES: the same rank.
Permutation Composed(const Permutation& first, const Permutation& second);

// The order without these axes of the input, which leave the result too; the
// others close up. `removed` is indexed by axis of the input.
Permutation Without(const Permutation& order, const std::vector<bool>& removed);

// nullopt when the values are not known, or have not each of 0..n-1 once.
// Negative ones count from the end.
std::optional<Permutation> ReadPermutation(const graph::PartialValue* value);

// The dimensions in another order. REQUIRES: the rank is the order's.
graph::PartialShape Permuted(const graph::PartialShape& shape,
                             const Permutation& order);

// Whether a tensor with this shape has its elements in the same order
// afterwards: only axes of size 1 change places. An unknown size may be any.
bool KeepsElements(const graph::PartialShape& shape, const Permutation& order);

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_LAYOUT_PERMUTATION_H_
