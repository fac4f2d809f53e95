#include "engine/graph/shapes/multiply_adds.h"

#include <cstdint>

#include "engine/graph/attr.h"

namespace optfarm::graph {
namespace {

// Each output element is a sum over the filter's first `axes` dimensions.
std::optional<double> WindowMultiplyAdds(const NodeShapes& node, int axes) {
  const std::optional<int64_t> outputs = node.output().elements();
  const PartialShape& filter = node.input(1);
  if (!outputs || !filter.is_static() || filter.rank() != 4) {
    return std::nullopt;
  }
  double sum = static_cast<double>(*outputs);
  for (int axis = 0; axis < axes; ++axis) {
    sum *= static_cast<double>(filter.dim(axis));
  }
  return sum;
}

}  // namespace

std::optional<double> ConvolutionMultiplyAdds(const NodeShapes& node) {
  return WindowMultiplyAdds(node, 3);
}

std::optional<double> DepthwiseMultiplyAdds(const NodeShapes& node) {
  return WindowMultiplyAdds(node, 2);
}

std::optional<double> MatMulMultiplyAdds(const NodeShapes& node) {
  const std::optional<int64_t> outputs = node.output().elements();
  const PartialShape& a = node.input(0);
  if (!outputs || !a.has_rank() || a.rank() != 2) return std::nullopt;
  const bool is_transposed =
      GetBoolOr(node.node(), "transpose_a", false).value_or(false);
  const int64_t depth = a.dim(is_transposed ? 0 : 1);
  if (depth < 0) return std::nullopt;
  return static_cast<double>(*outputs) * static_cast<double>(depth);
}

}  // namespace optfarm::graph
