// What the rules for values share. For those who add a rule; shape_inference.h
// is the way in.

#ifndef OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_VALUES_H_
#define OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_VALUES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/shapes/shape_context.h"

namespace optfarm::graph::value_rules {

using Element = std::optional<int64_t>;
using Elements = std::vector<Element>;

inline int64_t Product(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

// The output's shape, when it is static and small enough to hold values.
inline std::optional<std::vector<int64_t>> SmallOutput(const ShapeContext& c,
                                                       int i) {
  const std::optional<int64_t> count = c.output(i).elements();
  if (!count.has_value() || *count > kMaxValueElements) return std::nullopt;
  return std::vector<int64_t>(c.output(i).dims().begin(),
                              c.output(i).dims().end());
}

inline Element FromDim(int64_t dim) {
  return dim == kUnknownDim ? Element() : Element(dim);
}

}  // namespace optfarm::graph::value_rules

#endif  // OPTFARM_ENGINE_GRAPH_SHAPES_SHAPE_VALUES_H_
