#include "engine/transforms/layout/permutation.h"

#include <numeric>
#include <utility>

namespace optfarm::transforms {

Permutation IdentityOf(int rank) {
  Permutation order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool IsIdentity(const Permutation& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int>(i)) return false;
  }
  return true;
}

Permutation Inverse(const Permutation& order) {
  Permutation inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[order[i]] = static_cast<int>(i);
  }
  return inverse;
}

Permutation Composed(const Permutation& first, const Permutation& second) {
  Permutation both;
  for (int axis : second) both.push_back(first[axis]);
  return both;
}

Permutation Without(const Permutation& order,
                    const std::vector<bool>& removed) {
  std::vector<int> number(order.size());
  int count = 0;
  for (size_t i = 0; i < removed.size(); ++i) {
    number[i] = count;
    if (!removed[i]) ++count;
  }
  Permutation rest;
  for (int axis : order) {
    if (!removed[axis]) rest.push_back(number[axis]);
  }
  return rest;
}

std::optional<Permutation> ReadPermutation(const graph::PartialValue* value) {
  if (value == nullptr || value->rank() != 1 || !value->is_known()) {
    return std::nullopt;
  }
  const auto rank = static_cast<int64_t>(value->elements.size());
  Permutation order;
  std::vector<bool> is_there(value->elements.size(), false);
  for (const std::optional<int64_t>& element : value->elements) {
    const int64_t axis = *element < 0 ? *element + rank : *element;
    if (axis < 0 || axis >= rank || is_there[axis]) return std::nullopt;
    is_there[axis] = true;
    order.push_back(static_cast<int>(axis));
  }
  return order;
}

graph::PartialShape Permuted(const graph::PartialShape& shape,
                             const Permutation& order) {
  std::vector<int64_t> dims;
  for (int axis : order) dims.push_back(shape.dims()[axis]);
  return graph::PartialShape(std::move(dims));
}

bool KeepsElements(const graph::PartialShape& shape, const Permutation& order) {
  if (!shape.has_rank() || shape.rank() != static_cast<int>(order.size())) {
    return IsIdentity(order);
  }
  int last = -1;
  for (int axis : order) {
    if (shape.dims()[axis] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace optfarm::transforms
